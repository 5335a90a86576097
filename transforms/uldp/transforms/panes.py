"""The panes of a stream, from one step with state: time slices, and timers that sum them in the windows that fire.

Beam's own windows would take a report once for each sliding window that holds it, 1,440 times for a day every minute,
and look through all of these windows at each timer. Here a report is added to its slice. A timer at the end of the next
window sums the slices of the windows that have ended; another, by the clock, those of the windows with early panes.

The step is in the global window, and a key has a fixed window of many collections, or all sliding windows of one; see
``WindowKeys``. The runner calls the step for one key at a time, so panes have an order.
"""

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.coders import BytesCoder
from apache_beam.pvalue import PCollection
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import BagStateSpec, ReadModifyWriteStateSpec, TimerSpec, on_timer

from uldp.collector.counting import SpanKey
from uldp.collector.firing import NEVER, FixedWindow, Pending, SlidingWindows
from uldp.collector.partial import Partial, stack, sum_parts
from uldp.collector.published import Histories, History
from uldp.collector.shared_specs import SharedSpecs
from uldp.collector.window_keys import times_of
from uldp.collector.window_panes import WindowPane, with_p_values
from uldp.schemas.flags import Flag
from uldp.schemas.pane import PaneKind
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.clock import now
from uldp.transforms.coders import PartialCoder
from uldp.transforms.count import KeyedSpan
from uldp.transforms.internals import Given, Timestamp, WindowedValue
from uldp.transforms.metrics import counter
from uldp.transforms.windows import at_time


@dataclass
class FirePanes(beam.PTransform[PCollection[KeyedSpan], PCollection[Statistic]]):
    """Sum the spans of a stream in windows, and give the panes of each: early, on time, and late."""

    specs: Iterable[CollectionSpec]  # the collections to serve
    simulated_clock: bool = False  # whether publish times come from a simulation, and so say nothing about the present

    def expand(self, spans: PCollection[KeyedSpan]) -> PCollection[Statistic]:
        """Fire the windows of each key."""
        fire = _FirePanesFn(SharedSpecs.of(self.specs), simulated_clock=self.simulated_clock)
        panes: PCollection[Statistic] = spans | "FirePanes" >> beam.ParDo(fire)
        return panes


class _State(NamedTuple):
    """The states of a key; see ``_FirePanesFn``."""

    slices: Any
    parts: Any
    histories: Any
    waiting: Any
    pending: Any


@beam.typehints.with_input_types(KeyedSpan)
@beam.typehints.with_output_types(Statistic)
class _FirePanesFn(beam.DoFn):
    #: The slices as of the last firing, and what has come since: to add to a bag reads nothing.
    SLICES = ReadModifyWriteStateSpec("slices", PartialCoder())
    PARTS = BagStateSpec("parts", PartialCoder())
    #: What was published of each window, and by window what an early pane may publish later, see ``early_step``.
    HISTORIES = ReadModifyWriteStateSpec("histories", BytesCoder())
    WAITING = ReadModifyWriteStateSpec("waiting", PartialCoder())
    PENDING = ReadModifyWriteStateSpec("pending", BytesCoder())
    DUE = TimerSpec("due", TimeDomain.WATERMARK)
    EARLY = TimerSpec("early", TimeDomain.REAL_TIME)
    #: The cells of the panes to seal together.
    AT_ONCE = 1 << 16
    #: The cells of the panes of a sliding collection in one bundle, which the runner holds in memory.
    MOST = 1 << 22

    def __init__(self, specs: SharedSpecs, *, simulated_clock: bool) -> None:
        self._specs = specs
        self._simulated_clock = simulated_clock
        self._panes, self._windows = counter("panes"), counter("windows")

    def process(
        self,
        element: KeyedSpan,
        parts: Given = beam.DoFn.StateParam(PARTS),
        pending: Given = beam.DoFn.StateParam(PENDING),
        due: Given = beam.DoFn.TimerParam(DUE),
        early: Given = beam.DoFn.TimerParam(EARLY),
        # Under --runtime_type_check, Beam finds no state that only timers have.
        _slices: Given = beam.DoFn.StateParam(SLICES),
        _histories: Given = beam.DoFn.StateParam(HISTORIES),
        _waiting: Given = beam.DoFn.StateParam(WAITING),
    ) -> None:
        key, part = element
        parts.add(part)
        before = Pending.unpack(pending.read())
        after, times = before, times_of(key[0][0])
        first, last = (part.slots[[0, -1]].tolist()) if times.period else (key[1], key[1])
        end = first + (times.period or times.size)
        if end < before.due:  # if the watermark is there already, the timer fires at once
            after = after._replace(due=end)
            due.set(_last_of(end))
        if last + times.size > before.until:
            starting = self._early_every(key, part) - before.early.keys()
            if starting:
                moment = int(now() * 1000)
                after = after._replace(early={**before.early, **{every: moment + every for every in starting}})
                early.set(_at(min(after.early.values())))
        if after is not before:
            pending.write(after.pack())

    def _early_every(self, key: SpanKey, part: Partial) -> set[int]:
        """Return the milliseconds between early panes of the collections of a part."""
        ((_, shard), start), period = key, times_of(key[0][0]).period
        numbers = [shard] if period else (part.slots - start).tolist()
        return {every for each in map(self._specs.of_number, numbers) if (every := each.early_every) is not None}

    @on_timer(DUE)
    def end(
        self,
        key: Given = beam.DoFn.KeyParam,
        at: Given = beam.DoFn.TimestampParam,
        slices: Given = beam.DoFn.StateParam(SLICES),
        parts: Given = beam.DoFn.StateParam(PARTS),
        histories: Given = beam.DoFn.StateParam(HISTORIES),
        waiting: Given = beam.DoFn.StateParam(WAITING),
        pending: Given = beam.DoFn.StateParam(PENDING),
        due: Given = beam.DoFn.TimerParam(DUE),
    ) -> Iterator[WindowedValue]:
        """Fire the windows that have ended; the watermark is at ``at`` or behind it, as far as the runner says."""
        state = _State(slices, parts, histories, waiting, pending)
        before = Pending.unpack(pending.read())
        passed = min(at.micros // 1000 + 1, before.due + self._reach(key))
        after = before._replace(until=max(before.until, passed))
        next_due = yield from self._fire(key, state, before.until, after.until, None)
        if next_due is not None:
            due.set(_last_of(next_due))
            pending.write(after._replace(due=next_due).pack())
        else:
            pending.clear()

    def _reach(self, key: SpanKey) -> int:
        """Return the milliseconds from the first to the last end of windows that may fire in one bundle."""
        (group, number), _ = key
        period = times_of(group).period
        return period * (self.MOST // self._specs.of_number(number).mechanism.statistic_size) if period else NEVER

    @on_timer(EARLY)
    def early(
        self,
        key: Given = beam.DoFn.KeyParam,
        slices: Given = beam.DoFn.StateParam(SLICES),
        parts: Given = beam.DoFn.StateParam(PARTS),
        histories: Given = beam.DoFn.StateParam(HISTORIES),
        waiting: Given = beam.DoFn.StateParam(WAITING),
        pending: Given = beam.DoFn.StateParam(PENDING),
        early: Given = beam.DoFn.TimerParam(EARLY),
    ) -> Iterator[WindowedValue]:
        """Fire the windows that have not ended, and have received reports since they last fired."""
        before = Pending.unpack(pending.read())
        if before.early:
            moment = max(int(now() * 1000), min(before.early.values()))  # the timer is never early
            not_due = {every: due for every, due in before.early.items() if due > moment}
            state = _State(slices, parts, histories, waiting, pending)
            yield from self._fire(key, state, before.until, before.until, not_due)
            pending.write(before._replace(early=not_due).pack())
            if not_due:
                early.set(_at(min(not_due.values())))

    def _fire(
        self, key: SpanKey, state: _State, before: int, until: int, not_due: Mapping[int, int] | None
    ) -> Generator[WindowedValue, None, int | None]:
        """Yield panes due as the watermark comes from ``before`` to ``until``; return when the next are, or None."""
        new, old = sum_parts(state.parts.read()), state.slices.read() or Partial()
        slices, times = old + new, times_of(key[0][0])
        windows = (
            SlidingWindows(self._specs.of_number(key[0][1]), times, slices, new.slots, before)
            if times.period
            else FixedWindow(self._specs, times, key[1], slices)
        )
        histories = Histories.unpack(state.histories.read())
        waiting = dict((state.waiting.read() or Partial()).slices())
        waited = bool(waiting)
        fired = dict[int, History]()
        panes, room = list[WindowPane](), self.AT_ONCE
        for firing in windows.firing(histories, until, not_due):
            pane = WindowPane.of(firing, waiting)
            if pane is None:
                fired[firing.slot] = firing.past
                continue
            panes.append(pane)
            room -= firing.served.mechanism.statistic_size
            if room <= 0:
                yield from self._sealed(panes, fired)
                panes, room = [], self.AT_ONCE
        yield from self._sealed(panes, fired)
        kept, due = windows.left(until)
        state.parts.clear()
        if len(new) or len(kept) < len(slices):
            _write(state.slices, kept if len(kept) else None)
        if fired or len(kept) < len(slices):
            histories = histories.update(fired)
            if not len(kept):
                histories, waiting = Histories.unpack(None), {}
            elif times.period:
                histories = histories.since(int(kept.slots[0]) - times.size)
            _write(state.histories, histories.pack() if len(histories) else None)
        if waiting or waited:
            _write(state.waiting, stack(waiting) if waiting else None)
        return due if len(kept) else None

    def _sealed(self, panes: Sequence[WindowPane], fired: dict[int, History]) -> Iterator[WindowedValue]:
        """Yield sealed panes, and add the history with each to ``fired``, by slot."""
        for pane, p_values in with_p_values(panes):
            end = pane.firing.start + pane.firing.served.window_size
            flags = []
            if pane.firing.served.spec.key in self._specs.refused:
                flags.append(Flag.SPEC_REFUSED)
            # Only a drain lets the watermark pass a window's end before the clock does.
            if pane.kind is PaneKind.ON_TIME and not self._simulated_clock and time.time() * 1000 < end:
                flags.append(Flag.INCOMPLETE)
            sealed, fired[pane.firing.slot] = pane.seal(p_values, flags)
            self._panes.inc()
            self._windows.inc(pane.kind is PaneKind.ON_TIME)
            yield at_time(end - 1, sealed)


def _write(state: Any, value: Any) -> None:
    """Write a value, or clear the state if there is none."""
    if value is None:
        state.clear()
    else:
        state.write(value)


def _last_of(end: int) -> Timestamp:
    """Return the last moment before ``end``, at which Beam's windows fire too."""
    return Timestamp(micros=end * 1000 - 1)


def _at(moment: int) -> Timestamp:
    return Timestamp(micros=moment * 1000)
