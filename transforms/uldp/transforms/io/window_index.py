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
import zlib
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from uldp.schemas.codec.blocks import Container, ContainerError
from uldp.schemas.pane import PaneHeader
from uldp.schemas.specs.collection import CollectionKey
from uldp.transforms.io.durable_files import blocks_of, container_bytes, digest_of

#: The end and the start of a window, in milliseconds. The windows of a collection are in this order.
Place = tuple[int, int]

_KEY, _KEY_OF_SEVERAL = "uldp.windows", "uldp.collections"
_DIGEST_DIGITS = 16
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
    return _content(schema, encoded, _KEY, _json([_row(block) for block in blocks]))


def indexed_of_several(schema: str, panes: Iterable[tuple[CollectionKey, Place, bytes]]) -> tuple[str, bytes]:
    """Return the digest and the content of a file, as ``indexed`` does, but of panes of several collections.

    Args:
        schema: The name of the schema of their records.
        panes: The collection and version of each pane, the place of its window, and its record.
    """
    ordered = sorted(panes)
    encoded = [record for _, _, record in ordered]
    keys = iter([(of, place) for of, place, _ in ordered])
    blocks = []
    for block in blocks_of(encoded):
        runs = groupby([next(keys) for _ in block], key=itemgetter(0))
        blocks.append([[*of, *_row(_held([place for _, place in run]))] for of, run in runs])
    text = base64.b64encode(zlib.compress(_json(blocks).encode())).decode()
    return _content(schema, encoded, _KEY_OF_SEVERAL, text)


def _held(places: Sequence[Place]) -> BlockWindows:
    return BlockWindows(len(places), sum(1 for _ in groupby(places)), places[0], places[-1])


def _row(held: BlockWindows) -> list[int]:
    return [held.panes, held.windows, *held.first, *held.last]


def _json(rows: object) -> str:
    return json.dumps(rows, separators=(",", ":"))


def _content(schema: str, encoded: Sequence[bytes], key: str, text: str) -> tuple[str, bytes]:
    digest = digest_of(encoded)
    metadata = {key: f"{_signed(text, digest)}{text}"}
    return digest.hex(), container_bytes(schema, encoded, deflated=True, metadata=metadata)


def _signed(text: str, marker: bytes) -> str:
    return hashlib.sha256(marker + text.encode()).hexdigest()[:_DIGEST_DIGITS]


def index_of(container: Container) -> tuple[tuple[Run, ...], ...] | None:
    """Read the index in a header: the runs of each block; None if there is none.

    Raises:
        ContainerError: if it is damaged, or the index of other panes.
    """
    formats: tuple[tuple[str, Callable[[str], tuple[tuple[Run, ...], ...]]], ...] = (
        (_KEY, _of_one),
        (_KEY_OF_SEVERAL, _of_several),
    )
    for key, read in formats:
        if (stored := container.metadata.get(key)) is None:
            continue
        try:
            signed, text = (part.decode("ascii") for part in (stored[:_DIGEST_DIGITS], stored[_DIGEST_DIGITS:]))
            if signed != _signed(text, container.sync_marker):
                raise ValueError(signed)
            blocks = read(text)
            _check(blocks)
        except (ValueError, TypeError, LookupError, RecursionError, zlib.error):
            raise ContainerError("its index of windows is damaged") from None
        return blocks
    return None


def _of_one(text: str) -> tuple[tuple[Run, ...], ...]:
    return tuple((Run(None, _read_row(row)),) for row in json.loads(text))


def _of_several(text: str) -> tuple[tuple[Run, ...], ...]:
    inflater = zlib.decompressobj()
    inflated = inflater.decompress(base64.b64decode(text, validate=True), _MAX_BYTES)
    if not inflater.eof:
        raise ValueError("it takes too many bytes, or ends too early")
    return tuple(tuple(Run(_read_key(row[:2]), _read_row(row[2:])) for row in rows) for rows in json.loads(inflated))


def _read_key(row: Sequence[Any]) -> CollectionKey:
    collection, version = row
    if not isinstance(collection, str) or type(version) is not int:
        raise TypeError("no collection and version")
    return collection, version


def _read_row(row: Sequence[Any]) -> BlockWindows:
    panes, windows, *places = row
    if any(type(number) is not int for number in row):
        raise TypeError("not a number")
    end, start, last_end, last_start = places
    return BlockWindows(panes, windows, (end, start), (last_end, last_start))


def _check(blocks: Sequence[Sequence[Run]]) -> None:
    """Refuse what the writers above do not write.

    Raises:
        ValueError: if collections or windows do not ascend, or numbers contradict each other.
    """
    if not all(blocks):
        raise ValueError("a block is empty")
    for before, after in pairwise(run for block in blocks for run in block):
        if (before.of or ("", 0), before.held.last) > (after.of or ("", 0), after.held.first):
            raise ValueError("the blocks do not ascend")
    for block in blocks:
        for run in block:
            panes, windows, first, last = run.held
            if not 1 <= windows <= panes or first > last or (windows == 1) != (first == last):
                raise ValueError("a block is impossible")
        if any(before.of == after.of for before, after in pairwise(block)):
            raise ValueError("a collection has two runs in a block")


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
