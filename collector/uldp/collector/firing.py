"""Which windows fire, from the time slices of a collection: windows are sums of slices, and are themselves no state.

A report is added to one slice, however many sliding windows hold it: "count in panes of the period, merge the panes"
(Li et al., "No Pane, No Gain", SIGMOD Record 2005). Times are milliseconds. A window ends where slices begin, and holds
the slices of the ``size`` before.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple, Self

import numpy as np

from uldp.collector.collections import ServedCollection
from uldp.collector.ends import SliceReports
from uldp.collector.partial import Partial
from uldp.collector.published import Histories, History
from uldp.collector.shared_specs import SharedSpecs
from uldp.collector.window_keys import WindowTimes
from uldp.schemas.arrays import Counts, Times

#: Later than any window's end; less by any such time fits into 64 bits.
NEVER = 1 << 61
_PENDING = struct.Struct("<qq")


class Pending(NamedTuple):
    """What the slices of a key wait for."""

    due: int = NEVER  # the time at which the watermark makes them fire next
    until: int = -NEVER  # windows that end by this time have ended: the watermark was there
    #: By the milliseconds between two early panes, the time at which the next ones are due, by the clock.
    early: Mapping[int, int] = {}

    @classmethod
    def unpack(cls, packed: bytes | None) -> Self:
        """Read back what ``pack`` wrote, if anything."""
        if packed is None:
            return cls()
        early = np.frombuffer(packed, np.int64, offset=_PENDING.size).reshape(-1, 2)
        due, until = _PENDING.unpack_from(packed)
        return cls(due, until, dict(zip(early[:, 0].tolist(), early[:, 1].tolist(), strict=True)))

    def pack(self) -> bytes:
        """Write it."""
        early = np.array([*chain.from_iterable(self.early.items())], dtype=np.int64)
        return _PENDING.pack(self.due, self.until) + early.tobytes()


class Firing(NamedTuple):
    """A window that fires."""

    served: ServedCollection
    start: int
    slot: int  # the number of its row in the state
    total: Partial
    ended: bool
    past: History  # its history, with what it has received now


@dataclass(frozen=True)
class FixedWindow:
    """A fixed window of many collections, whose slots are their numbers behind the start; see ``WindowKeys``."""

    specs: SharedSpecs
    times: WindowTimes
    start: int
    slices: Partial

    def firing(self, histories: Histories, until: int, not_due: Mapping[int, int] | None) -> Iterator[Firing]:
        """Yield the collections whose window fires, because it has ended or received more, see ``SlidingWindows``."""
        ended = self.start + self.times.size <= until
        if not ended and not_due is None:
            return
        received, (fired, closed) = self.slices.received + self.slices.missing, histories.fired(self.slices.slots)
        due = ((received > 0) & ((received != fired) | (ended & ~closed))).tolist()
        for (slot, total), is_due, n in zip(self.slices.slices(), due, received.tolist(), strict=True):
            if is_due:
                served = self.specs.of_number(slot - self.start)
                if ended or _is_early(served, not_due):
                    yield Firing(served, self.start, slot, total, ended, replace(histories.get(slot), fired=n))

    def left(self, until: int) -> tuple[Partial, int]:
        """Return the slices of all collections until the last is freed; and when the window ends, or is freed."""
        end = self.start + self.times.size
        served = [self.specs.of_number(slot - self.start) for slot in self.slices.slots.tolist()]
        freed = end + max((each.held_for for each in served), default=0)
        return self.slices if until < freed else Partial(), end if end > until else freed


@dataclass(frozen=True)
class SlidingWindows:
    """All sliding windows of a collection, as sums of its slices."""

    served: ServedCollection
    times: WindowTimes
    slices: Partial
    new: Times  # the slices of what has come since the last firing
    before: int  # the watermark at the last firing

    def firing(self, histories: Histories, until: int, not_due: Mapping[int, int] | None) -> Iterator[Firing]:
        """Yield the windows that fire; ``not_due`` early panes are as in ``Pending``, or None is due."""
        size, period, offset = self.times
        last = NEVER if _is_early(self.served, not_due) else until
        late = windows_of(self.new, size, period, offset, -NEVER, self.before)
        late = late[late + size + self.served.held_for > self.before]  # the slices of the others were freed
        starts = np.concatenate([late, windows_of(self.slices.slots, size, period, offset, self.before, last)])
        due = [
            (start, start + size <= until, replace(past, fired=received))
            for start, received in zip(starts.tolist(), fired_by(self.slices, starts, size).tolist(), strict=True)
            if received
            for past in [histories.get(start)]
            # A window that has just ended fires although it has received nothing more.
            if received != past.fired or (start + size <= until and not past.closed)
        ]
        if due:
            starting = [start for start, _, _ in due]
            slices = self.slices.between(min(starting), max(starting) + size)
            ends = SliceReports.of(self.served, dict(slices.slices()))
            for start, ended, past in due:
                total = ends.ended(start, self.slices.window(start, start + size))
                yield Firing(self.served, start, start, total, ended, past)

    def left(self, until: int) -> tuple[Partial, int]:
        """Return the slices that windows still need; and when the next of these windows ends, or all are freed."""
        kept = self.slices.between(until - self.times.size - self.served.held_for + 1, NEVER)
        return kept, next_due(self.times, self.served.held_for, kept.slots, until) if len(kept) else NEVER


def _is_early(served: ServedCollection, not_due: Mapping[int, int] | None) -> bool:
    """Return whether the early panes of a collection are due."""
    return not_due is not None and served.early_every is not None and served.early_every not in not_due


def windows_of(slots: Times, size: int, period: int, offset: int, after: int, until: int) -> Times:
    """Return the starts of the windows that hold one of these slices and end behind ``after``, by ``until``."""
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
    return np.asarray(np.repeat(first, k) + period * number - size)


def fired_by(slices: Partial, starts: Times, size: int) -> Counts:
    """Return how many reports each window has received, and its missing messages: more of them make it fire again."""
    if not len(slices):
        return np.zeros(len(starts), dtype=np.int64)
    received = np.concatenate([[0], np.cumsum(slices.received)])
    first, end = np.searchsorted(slices.slots, (starts, starts + size))
    begins = first.clip(max=len(slices) - 1)
    missing = np.where(slices.slots[begins] == starts, slices.missing[begins], 0)
    return np.asarray(received[end] - received[first] + missing)


def next_due(times: WindowTimes, held_for: int, slots: Times, until: int) -> int:
    """Return when the next sliding window with one of these slices ends behind ``until``, or else when all go."""
    size, period, offset = times
    open_slots = slots[slots + size > until]
    if not len(open_slots):
        return int(slots[-1]) + size + held_for
    return max(int(open_slots[0]) + period, (until - offset) // period * period + offset + period)
