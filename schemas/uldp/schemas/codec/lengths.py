"""Reports of known layouts that are too short or too long, found many at a time.

The plain decoder is the reference: it finds the same of each, one by one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from uldp.schemas.arrays import Mask, Rows
from uldp.schemas.codec.columnar import ID_SIZE, MIN_ROWS, Layout, PaddedMessages, varint_widths
from uldp.schemas.codec.packed import Bodies

#: What ``varint_widths`` can tell.
_MAX_WIDTH = 8


class Misfits(NamedTuple):
    """Messages that begin as a report of a layout does."""

    cut: Rows  # shape (n,): those that end inside the body, ascending
    overlong: Rows  # shape (m,): those that go on behind the payload, ascending


def misfits(messages: Bodies, rows: Rows, layouts: Sequence[Layout]) -> Misfits:
    """Find reports of ``layouts`` with another length among ascending ``rows``; what is not sure is left out."""
    none = rows[:0]
    if len(rows) < MIN_ROWS or not layouts:
        return Misfits(none, none)
    padded = PaddedMessages.of(messages, rows, max(layout.longest for layout in layouts))
    of = padded.layouts_of(layouts)
    cut, overlong = [none], [none]
    for number, layout in enumerate(layouts):
        at = padded.starts + len(layout.prefix)
        of_layout = np.flatnonzero((of == number) & (at <= padded.ends))
        if len(of_layout):
            short, long = _judge(padded, at[of_layout], padded.ends[of_layout], layout)
            cut.append(rows[of_layout[short]])
            overlong.append(rows[of_layout[long]])
    return Misfits(np.sort(np.concatenate(cut)), np.sort(np.concatenate(overlong)))


def _judge(padded: PaddedMessages, at: Rows, ends: Rows, layout: Layout) -> tuple[Mask, Mask]:
    """Return which messages are cut, and which overlong; behind the prefix, their bodies start at ``at``."""
    at = at + ID_SIZE
    cut = at > ends
    widths = varint_widths(padded.words(np.minimum(at, ends)))
    cut |= at + widths > ends
    at = at + widths
    whole = ~cut & (widths <= _MAX_WIDTH)
    cut |= whole & (at == ends)
    branch = padded.fields(np.minimum(at, ends), 1).view(np.uint8)
    whole &= (at < ends) & (branch == layout.payload_prefix[0])
    at = at + 1
    if layout.width is None:
        widths = varint_widths(padded.words(np.minimum(at, ends)))
        whole &= (widths <= _MAX_WIDTH) | (at + widths > ends)
    else:
        length = layout.payload_prefix[1:]
        whole &= padded.fields(np.minimum(at, ends), len(length)) == np.void(length)
        whole &= at + len(length) <= ends
        widths = np.full(len(at), len(length) + layout.width)
    return cut | (whole & (at + widths > ends)), whole & (at + widths < ends)
