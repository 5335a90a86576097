"""The index of a file of panes: which windows each of its blocks holds, so that a reader finds some without the others.

The writer sorts the panes of a file by window, and stores the index in the file's header with a digest of it and of the
sync marker, which names the panes. A damaged index, or one of another file, is so found. A file that other tools have
written again has none, and is read whole.

A file of several collections is sorted by collection first, and its index names them. It is compressed, because a file
may have a window of each of thousands of collections.
"""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby, islice
from operator import eq, ge, gt, itemgetter, ne
from typing import Any, NamedTuple

from uldp.schemas.codec.blocks import Container, ContainerError
from uldp.schemas.pane import PaneHeader
from uldp.schemas.specs.collection import COLLECTION, MAX_VERSION, CollectionKey
from uldp.transforms.io.durable_files import blocks_of, container_bytes, digest_of

#: The end and the start of a window, in milliseconds. The windows of a collection are in this order.
Place = tuple[int, int]

_KEY, _KEY_OF_SEVERAL = "uldp.windows", "uldp.collections"
_DIGEST_DIGITS = 16
_NAME = re.compile(COLLECTION)
#: The size of a block of panes of several collections. A reader of one decodes the others in its block.
BLOCK_SIZE_OF_SEVERAL = 1 << 13
#: The largest index of several collections in bytes, when inflated. One of 10,000 panes has a third of it at the most.
_MAX_BYTES = 1 << 22


def place_of(pane: PaneHeader) -> Place:
    """Return the place of a pane's window among those of its collection."""
    return pane.window_end, pane.window_start


class BlockWindows(NamedTuple):
    """What a block holds, or the part of it that is of one collection.

    Attributes:
        panes: Their number.
        windows: The number of different windows.
        first: The first window.
        last: The last one.
    """

    panes: int
    windows: int
    first: Place
    last: Place


class Run(NamedTuple):
    """Panes of a block that follow each other, and are of one collection and version.

    Attributes:
        of: The collection and version; None if the index does not name it, because all panes of the file are of one.
        held: Their windows.
    """

    of: CollectionKey | None
    held: BlockWindows


def indexed(schema: str, panes: Iterable[tuple[Place, bytes]]) -> tuple[str, bytes]:
    """Return the digest that names a file of panes, and its content; both follow from the panes, whatever their order.

    Args:
        schema: The name of the schema of their records.
        panes: The place of each pane's window, and its record as ``encode_record`` returns it.
    """
    ordered = sorted(panes)
    encoded = [record for _, record in ordered]
    places = iter([place for place, _ in ordered])
    blocks = [_held([next(places) for _ in block]) for block in blocks_of(encoded)]
    return _content(schema, encoded, {_KEY: _json([_row(block) for block in blocks])})


def indexed_of_several(schema: str, panes: Iterable[tuple[CollectionKey, Place, bytes]]) -> tuple[str, bytes]:
    """Return the digest and the content of a file, as ``indexed`` does, but of panes of several collections.

    Args:
        schema: The name of the schema of their records.
        panes: The collection and version of each pane, the place of its window, and its record.
    """
    ordered = sorted(panes)
    encoded = [record for _, _, record in ordered]
    keys = iter([(of, place) for of, place, _ in ordered])
    places = {place: number for number, place in enumerate(sorted({place for _, place, _ in ordered}))}
    sizes, rows = list[int](), list[tuple[object, ...]]()
    for block in blocks_of(encoded, BLOCK_SIZE_OF_SEVERAL):
        before = len(rows)
        for of, run in groupby([next(keys) for _ in block], key=itemgetter(0)):
            held = _held([place for _, place in run])
            rows.append((*of, held.panes, held.windows, places[held.first], places[held.last]))
        sizes.append(len(rows) - before)
    index = _json([sizes, [*places], [*zip(*rows, strict=True)]])
    text = base64.b64encode(zlib.compress(index.encode())).decode()
    return _content(schema, encoded, {_KEY_OF_SEVERAL: text}, BLOCK_SIZE_OF_SEVERAL)


def _held(places: Sequence[Place]) -> BlockWindows:
    return BlockWindows(len(places), sum(1 for _ in groupby(places)), places[0], places[-1])


def _row(held: BlockWindows) -> list[int]:
    return [held.panes, held.windows, *held.first, *held.last]


def _json(rows: object) -> str:
    return json.dumps(rows, separators=(",", ":"))


def _content(
    schema: str, encoded: Sequence[bytes], index: Mapping[str, str], block_size: int | None = None
) -> tuple[str, bytes]:
    digest = digest_of(encoded)
    metadata = {key: f"{_signed(text, digest)}{text}" for key, text in index.items()}
    content = container_bytes(schema, encoded, deflated=True, metadata=metadata, block_size=block_size)
    return digest.hex(), content


def _signed(text: str, marker: bytes) -> str:
    return hashlib.sha256(marker + text.encode()).hexdigest()[:_DIGEST_DIGITS]


def index_of(container: Container) -> tuple[tuple[Run, ...], ...] | None:
    """Read the index in a header: the runs of each block; None if there is none.

    Raises:
        ContainerError: if it is damaged, or the index of other panes.
    """
    for key, read in ((_KEY, _of_one), (_KEY_OF_SEVERAL, _of_several)):
        if (stored := container.metadata.get(key)) is None:
            continue
        try:
            signed, text = (part.decode("ascii") for part in (stored[:_DIGEST_DIGITS], stored[_DIGEST_DIGITS:]))
            if signed != _signed(text, container.sync_marker):
                raise ValueError(signed)
            return read(text)
        except (ValueError, TypeError, LookupError, RecursionError, zlib.error):
            raise ContainerError("its index of windows is damaged") from None
    return None


def _of_one(text: str) -> tuple[tuple[Run, ...], ...]:
    rows = json.loads(text)
    if not rows:
        return ()
    panes, windows, end, start, last_end, last_start = zip(*rows, strict=True)
    _integers(end, start, last_end, last_start)
    first, last = [*zip(end, start, strict=True)], [*zip(last_end, last_start, strict=True)]
    _check(panes, windows, first, last, [("", 0)] * len(rows))
    return tuple((Run(None, held),) for held in map(BlockWindows, panes, windows, first, last))


def _of_several(text: str) -> tuple[tuple[Run, ...], ...]:
    inflater = zlib.decompressobj()
    inflated = inflater.decompress(base64.b64decode(text, validate=True), _MAX_BYTES)
    if not inflater.eof:
        raise ValueError("it takes too many bytes, or ends too early")
    sizes, pairs, columns = json.loads(inflated)
    collections, versions, panes, windows, first, last = columns
    if not set(map(type, collections)) <= {str}:
        raise TypeError("no collection")
    _integers(sizes, versions, first, last, *pairs)
    # These become a part of a path, and whoever writes a file can sign its index.
    if not all(map(_NAME.fullmatch, set(collections))) or min(versions) < 1 or max(versions) >= MAX_VERSION:
        raise ValueError("no collection has this name and version")
    places = [(end, start) for end, start in pairs]
    if min(sizes) < 1 or sum(sizes) != len(collections) or min(first) < 0 or any(map(ge, places, places[1:])):
        raise ValueError("blocks or places are impossible")
    of = [*zip(collections, versions, strict=True)]
    _check(panes, windows, first, last, of)  # the numbers of places ascend as the places do
    held = map(BlockWindows, panes, windows, map(places.__getitem__, first), map(places.__getitem__, last))
    runs = map(Run, of, held)
    blocks = tuple(tuple(islice(runs, size)) for size in sizes)
    if any(len({run.of for run in block}) < len(block) for block in blocks):
        raise ValueError("a collection has two runs in a block")
    return blocks


def _integers(*columns: Sequence[Any]) -> None:
    if set(map(type, chain.from_iterable(columns))) != {int}:
        raise TypeError("not a number")


def _check(
    panes: Sequence[int],
    windows: Sequence[int],
    first: Sequence[Any],
    last: Sequence[Any],
    of: Sequence[CollectionKey],
) -> None:
    """Refuse runs that the writers above do not write, all at once, as there may be thousands.

    Raises:
        ValueError, TypeError: if collections or windows do not ascend, or numbers contradict each other.
    """
    _integers(panes, windows)
    if not len(panes) == len(windows) == len(first) == len(last) == len(of):
        raise ValueError("a run is not whole")
    alone = [number == 1 for number in windows]
    if min(windows) < 1 or any(map(gt, windows, panes)) or any(map(gt, first, last)):
        raise ValueError("a run is impossible")
    if any(map(ne, alone, map(eq, first, last))):
        raise ValueError("one window has two places, or several have one")
    begins, ends = [*zip(of, first, strict=True)], [*zip(of, last, strict=True)]
    if any(map(gt, ends, begins[1:])):
        raise ValueError("the blocks do not ascend")


def first_of_last(blocks: Sequence[BlockWindows], number: int) -> Place | None:
    """Return a window from which on the blocks hold so many windows or more; None if they do not.

    It is the first of a block, because the index does not tell the windows of a block apart.
    """
    found = 0
    after: Place | None = None
    for _, windows, first, last in reversed(blocks):
        found += windows - (last == after)  # the window in which two blocks meet is one
        if found >= number:
            return first
        after = first
    return None
