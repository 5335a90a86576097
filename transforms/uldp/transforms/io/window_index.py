"""The index of a file of panes: which windows each of its blocks holds, so that a reader finds some without the others.

The writer sorts the panes of a file by window, and stores the index in the file's header with a digest of it and of the
sync marker, which names the panes. A damaged index, or one of another file, is so found. A file that other tools have
written again has none, and is read whole.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from uldp.schemas.codec.blocks import Container, ContainerError
from uldp.schemas.pane import PaneHeader
from uldp.transforms.io.durable_files import blocks_of, container_bytes, digest_of

#: The end and the start of a window, in milliseconds. The windows of a collection are in this order.
Place = tuple[int, int]

_KEY = "uldp.windows"
_DIGEST_DIGITS = 16


def place_of(pane: PaneHeader) -> Place:
    """Return the place of a pane's window among those of its collection."""
    return pane.window_end, pane.window_start


class BlockWindows(NamedTuple):
    """What a block holds.

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


def indexed(schema: str, panes: Iterable[tuple[Place, bytes]]) -> tuple[str, bytes]:
    """Return the digest that names a file of panes, and its content; both follow from the panes, whatever their order.

    Args:
        schema: The name of the schema of their records.
        panes: The place of each pane's window, and its record as ``encode_record`` returns it.
    """
    ordered = sorted(panes)
    encoded = [record for _, record in ordered]
    places = iter([place for place, _ in ordered])
    blocks = [_of_block([next(places) for _ in block]) for block in blocks_of(encoded)]
    digest = digest_of(encoded)
    text = json.dumps(
        [[panes, windows, *first, *last] for panes, windows, first, last in blocks], separators=(",", ":")
    )
    metadata = {_KEY: f"{_signed(text, digest)}{text}"}
    return digest.hex(), container_bytes(schema, encoded, deflated=True, metadata=metadata)


def _of_block(places: Sequence[Place]) -> BlockWindows:
    return BlockWindows(len(places), sum(1 for _ in groupby(places)), places[0], places[-1])


def _signed(text: str, marker: bytes) -> str:
    return hashlib.sha256(marker + text.encode()).hexdigest()[:_DIGEST_DIGITS]


def index_of(container: Container) -> tuple[BlockWindows, ...] | None:
    """Read the index in a header; None if there is none.

    Raises:
        ContainerError: if it is damaged, or the index of other panes.
    """
    stored = container.metadata.get(_KEY)
    if stored is None:
        return None
    try:
        signed, text = (part.decode("ascii") for part in (stored[:_DIGEST_DIGITS], stored[_DIGEST_DIGITS:]))
        if signed != _signed(text, container.sync_marker):
            raise ValueError(signed)
        blocks = tuple(BlockWindows(row[0], row[1], (row[2], row[3]), (row[4], row[5])) for row in json.loads(text))
        _check(blocks)
    except (ValueError, TypeError, LookupError, RecursionError):
        raise ContainerError("its index of windows is damaged") from None
    return blocks


def _check(blocks: Sequence[BlockWindows]) -> None:
    """Refuse what ``indexed`` does not write.

    Raises:
        ValueError: if windows do not ascend, or numbers contradict each other.
    """
    numbers = [number for panes, windows, first, last in blocks for number in (panes, windows, *first, *last)]
    if any(type(number) is not int for number in numbers):
        raise ValueError("not a number")
    for panes, windows, first, last in blocks:
        if not 1 <= windows <= panes or first > last or (windows == 1) != (first == last):
            raise ValueError("a block is impossible")
    if any(before.last > after.first for before, after in pairwise(blocks)):
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
