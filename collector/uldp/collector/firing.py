"""Which windows fire, from the time slices of a collection: windows are sums of slices, and are themselves no state.

A report is added to one slice, however many sliding windows hold it: "count in panes of the period, merge the panes"
(Li et al., "No Pane, No Gain", SIGMOD Record 2005). Times are milliseconds. A window ends where slices begin, and holds
the slices of the ``size`` before.
"""

import struct
from typing import NamedTuple, Self

import numpy as np

from uldp.collector.collections import ServedCollection
from uldp.collector.partial import Partial
from uldp.schemas.arrays import Counts, Times

#: Later than any window's end; less by any such time fits into 64 bits.
NEVER = 1 << 61
_PENDING = struct.Struct("<qq?")


class Pending(NamedTuple):
    """What the slices of a collection wait for.

    Attributes:
        due: The time at which the watermark makes them fire next.
        until: Windows that end by this time have ended: the watermark was there.
        early: Whether early panes are under way.
    """

    due: int = NEVER
    until: int = -NEVER
    early: bool = False

    @classmethod
    def unpack(cls, packed: bytes | None) -> Self:
        """Read back what ``pack`` wrote, if anything."""
        return cls() if packed is None else cls(*_PENDING.unpack(packed))

    def pack(self) -> bytes:
        """Write it."""
        return _PENDING.pack(*self)


def windows_of(slots: Times, size: int, period: int, offset: int, after: int, until: int) -> Times:
    """Return the starts of the windows that hold one of these slices and end behind ``after``, by ``until``.

    Args:
        slots: The starts of slices, multiples of ``period``, ``offset`` later.
        size: The length of a window.
        period: The length of a slice.
        offset: See ``slots``.
        after: A time.
        until: A time.
    """
    if after >= until:
        return slots[:0]
    slots = np.unique(slots) if len(slots) > 1 else slots
    if size == period:  # as below: a window of one slice begins and ends with it
        return slots[(slots + size > after) & (slots + size <= until)]
    # The ends of the windows of a slice that are not those of the slice before, as a range from first to last.
    first = slots + period
    first[1:] = np.maximum(first[1:], first[:-1] + size)
    first = np.maximum(first, (after - offset) // period * period + offset + period)
    last = np.minimum(slots + size, (until - offset) // period * period + offset)
    k = np.where(last >= first, (last - first) // period + 1, 0)
    number = np.arange(k.sum()) - np.repeat(np.cumsum(k) - k, k)
    starts: Times = np.repeat(first, k) + period * number - size
    return starts


def fired_by(slices: Partial, starts: Times, size: int) -> Counts:
    """Return how many reports each window has received, and its missing messages: more of them make it fire again.

    Args:
        slices: The slices of the collection.
        starts: Shape (k,): the starts of windows.
        size: The length of a window.
    """
    if not len(slices):
        return np.zeros(len(starts), dtype=np.int64)
    received = np.concatenate([[0], np.cumsum(slices.received)])
    first, end = np.searchsorted(slices.slots, (starts, starts + size))
    begins = first.clip(max=len(slices) - 1)
    missing = np.where(slices.slots[begins] == starts, slices.missing[begins], 0)
    total: Counts = received[end] - received[first] + missing
    return total


def next_due(served: ServedCollection, slots: Times, until: int) -> int:
    """Return when the next window with one of these slices ends behind ``until``, or else when all are freed."""
    size, period = served.window_size, served.slice_size
    open_slots = slots[slots + size > until]
    if not len(open_slots):
        return int(slots[-1]) + size + served.held_for
    return max(int(open_slots[0]) + period, served.slice_start(until) + period)
