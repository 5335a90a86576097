"""The panes of a stream, from one step with state: time slices, and timers that sum them in the windows that fire.

Beam's own windows would take a report once for each sliding window that holds it, 1,440 times for a day every minute,
and look through all of these windows at each timer. Here a report is added to its slice. A timer at the end of the next
window sums the slices of the windows that have ended; another, by the clock, those of the windows with early panes.

The step is in the global window, so a collection has keys for its windows: one for each fixed window, which shares its
slice with no other, and one for all sliding windows. The runner calls the step for one key at a time, so panes have an
order.
"""

import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.coders import BytesCoder
from apache_beam.pvalue import PCollection
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import BagStateSpec, ReadModifyWriteStateSpec, TimerSpec, on_timer

from uldp.collector.collections import ServedCollection
from uldp.collector.counting import SpanKey
from uldp.collector.ends import SliceReports
from uldp.collector.firing import NEVER, Pending, fired_by, next_due, windows_of
from uldp.collector.partial import Partial, stack, sum_slices
from uldp.collector.published import EarlyStep, Histories, History, differs, early_step, public, reports_of
from uldp.collector.sealing import WindowSum, p_values_of, seal
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.arrays import Times
from uldp.schemas.flags import Flag
from uldp.schemas.pane import Pane, PaneKind
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.clock import now
from uldp.transforms.coders import PartialCoder
from uldp.transforms.count import KeyedPartial
from uldp.transforms.internals import Given, Timestamp, WindowedValue
from uldp.transforms.metrics import counter
from uldp.transforms.windows import at_time


@dataclass
class FirePanes(beam.PTransform[PCollection[KeyedPartial], PCollection[Statistic]]):
    """Sum the parts of slices of a stream in windows, and give the panes of each: early, on time, and late.

    Attributes:
        specs: The collections to serve.
        simulated_clock: Whether publish times come from a simulation, and so say nothing about the present.
    """

    specs: Iterable[CollectionSpec]
    simulated_clock: bool = False

    def expand(self, parts: PCollection[KeyedPartial]) -> PCollection[Statistic]:
        """Key the slices by the windows that share them."""
        specs = SharedSpecs.of(self.specs)
        panes: PCollection[Statistic] = (
            parts
            | "KeyByWindows" >> beam.Map(_by_windows, specs).with_output_types(tuple[SpanKey, Partial])
            | "FirePanes" >> beam.ParDo(_FirePanesFn(specs, simulated_clock=self.simulated_clock))
        )
        return panes


def _by_windows(
    element: KeyedPartial, specs: SharedSpecs, timestamp: Given = beam.DoFn.TimestampParam
) -> tuple[SpanKey, Partial]:
    key, part = element
    served = specs.of_key(key)
    start = served.slice_start(timestamp.micros // 1000)
    return (key, start if served.spec.window.period is None else 0), part.at(start)


class _State(NamedTuple):
    """The states of a key; see ``_FirePanesFn``."""

    slices: Any
    parts: Any
    histories: Any
    waiting: Any
    pending: Any


@beam.typehints.with_input_types(tuple[SpanKey, Partial])
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

    def __init__(self, specs: SharedSpecs, *, simulated_clock: bool) -> None:
        self._specs = specs
        self._simulated_clock = simulated_clock
        self._panes, self._windows = counter("panes"), counter("windows")

    def process(
        self,
        element: tuple[SpanKey, Partial],
        parts: Given = beam.DoFn.StateParam(PARTS),
        pending: Given = beam.DoFn.StateParam(PENDING),
        due: Given = beam.DoFn.TimerParam(DUE),
        early: Given = beam.DoFn.TimerParam(EARLY),
        # Under --runtime_type_check, Beam finds no state that only timers have.
        _slices: Given = beam.DoFn.StateParam(SLICES),
        _histories: Given = beam.DoFn.StateParam(HISTORIES),
        _waiting: Given = beam.DoFn.StateParam(WAITING),
    ) -> None:
        ((key, _), part) = element
        served, start = self._specs.of_key(key), int(part.slots[0])
        parts.add(part)
        before = after = Pending.unpack(pending.read())
        end = start + served.slice_size
        if end < before.due:  # if the watermark is there already, the timer fires at once
            after = after._replace(due=end)
            due.set(_last_of(end))
        every = served.spec.window.early_every
        if every is not None and not before.early and start + served.window_size > before.until:
            after = after._replace(early=True)
            early.set(Timestamp.of(now() + every.total_seconds()))
        if after != before:
            pending.write(after.pack())

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
        """Fire the windows that have ended."""
        state = _State(slices, parts, histories, waiting, pending)
        before = Pending.unpack(pending.read())
        after = before._replace(until=max(before.until, at.micros // 1000 + 1))
        if self._is_over(key, after.until):
            for each in (*state, pending):
                each.clear()
            return
        slots = yield from self._fire(key, state, before.until, after.until, early=False)
        if len(slots):
            after = after._replace(due=next_due(self._specs.of_key(key[0]), slots, after.until))
            due.set(_last_of(after.due))
            pending.write(after.pack())
        else:
            pending.clear()

    @on_timer(EARLY)
    def early(
        self,
        key: Given = beam.DoFn.KeyParam,
        slices: Given = beam.DoFn.StateParam(SLICES),
        parts: Given = beam.DoFn.StateParam(PARTS),
        histories: Given = beam.DoFn.StateParam(HISTORIES),
        waiting: Given = beam.DoFn.StateParam(WAITING),
        pending: Given = beam.DoFn.StateParam(PENDING),
    ) -> Iterator[WindowedValue]:
        """Fire the windows that have not ended, and have received reports since they last fired."""
        before = Pending.unpack(pending.read())
        if before.early:
            state = _State(slices, parts, histories, waiting, pending)
            yield from self._fire(key, state, before.until, before.until, early=True)
            pending.write(before._replace(early=False).pack())

    def _is_over(self, key: SpanKey, until: int) -> bool:
        """Return whether a key is of a fixed window that can change no more; a sliding key holds slices of others."""
        served, start = self._specs.of_key(key[0]), key[1]
        return served.spec.window.period is None and start + served.window_size + served.held_for <= until

    def _fire(
        self, key: SpanKey, state: _State, before: int, until: int, *, early: bool
    ) -> Generator[WindowedValue, None, Times]:
        """Yield the panes that are due when the watermark has come from ``before`` to ``until``.

        Returns:
            The slices that windows still need.
        """
        self._specs.refresh()
        served = self._specs.of_key(key[0])
        size, period, offset = served.window_size, served.slice_size, served.offset
        new, old = sum_slices(state.parts.read()), state.slices.read() or Partial()
        slices = old + new
        histories = Histories.unpack(state.histories.read())
        waiting = dict((state.waiting.read() or Partial()).slices())
        waited = bool(waiting)
        starts = np.concatenate(
            [
                windows_of(new.slots, size, period, offset, -NEVER, before),
                windows_of(slices.slots, size, period, offset, before, NEVER if early else until),
            ]
        )
        starts = starts[starts + size + served.held_for > until]
        due = [
            (start, start + size <= until, replace(past, fired=received))
            for start, received in zip(starts.tolist(), fired_by(slices, starts, size).tolist(), strict=True)
            if received
            for past in [histories.get(start)]
            # A window that has just ended fires although it has received nothing more.
            if received != past.fired or (start + size <= until and not past.closed)
        ]
        ends = _reports_at_ends(served, slices, [start for start, _, _ in due])
        fired = dict[int, History]()
        for start, ended, past in due:
            total = ends.ended(start, slices.window(start, start + size))
            if not ended:
                step = _early_step(served, waiting.get(start), total)
                if step.waiting is not None:
                    waiting[start] = step.waiting
                published, kind = step.published, PaneKind.EARLY
            else:
                waiting.pop(start, None)
                published, kind = total, PaneKind.LATE if past.closed else PaneKind.ON_TIME
            if published is not None:
                sealed, past = self._sealed(served, published, start, kind, past)
                self._panes.inc()
                self._windows.inc(kind is PaneKind.ON_TIME)
                yield at_time(start + size - 1, sealed)
            fired[start] = past
        kept = slices.between(until - size - served.held_for + 1, NEVER)
        state.parts.clear()
        if len(new) or len(kept) < len(slices):
            _write(state.slices, kept if len(kept) else None)
        if fired or len(kept) < len(slices):
            histories = histories.update(fired).since(int(kept.slots[0]) - size if len(kept) else NEVER)
            _write(state.histories, histories.pack() if len(histories) else None)
        if waiting or waited:
            _write(state.waiting, stack(waiting) if waiting else None)
        return kept.slots

    def _sealed(
        self, served: ServedCollection, partial: Partial, start: int, kind: PaneKind, past: History
    ) -> tuple[Statistic, History]:
        """Seal a pane, and return the history with it."""
        total, end = WindowSum.of(partial, start), start + served.window_size
        decoder, least = served.protocol.decoder, served.spec.limits.min_reports
        (p_values,) = p_values_of(decoder, [total])
        sealed = seal(served, total, start, end, Pane(kind, past.panes), p_values)
        if served.spec.key in self._specs.refused:
            sealed = replace(sealed, flags=(*sealed.flags, Flag.SPEC_REFUSED))
        # Only a drain lets the watermark pass a window's end before the clock does.
        if kind is PaneKind.ON_TIME and not self._simulated_clock and time.time() * 1000 < end:
            sealed = replace(sealed, flags=(*sealed.flags, Flag.INCOMPLETE))
        reports = reports_of(decoder, partial)
        exact = least == 1 or served.spec.window.exact_late
        if not exact and not differs(past.reports, reports, least, or_equals=True):
            held = replace(sealed, flags=(*sealed.flags, Flag.FEW_MORE), supersedes=past.held)
            return held, past.after_held(sealed.n)
        published = () if Flag.FEW_AT_ENDS in sealed.flags else public(reports, least)
        return (
            replace(sealed, supersedes=past.last),
            past.after(sealed.n, published, closed=kind is not PaneKind.EARLY),
        )


def _write(state: Any, value: Any) -> None:
    """Write a value, or clear the state if there is none."""
    if value is None:
        state.clear()
    else:
        state.write(value)


def _last_of(end: int) -> Timestamp:
    """Return the last moment before ``end``, at which Beam's windows fire too."""
    return Timestamp(micros=end * 1000 - 1)


def _early_step(served: ServedCollection, waiting: Partial | None, total: Partial) -> EarlyStep:
    """Return what an early pane publishes, if anything, and what a later one may publish."""
    least = served.spec.limits.min_reports
    return EarlyStep(total, None) if least == 1 else early_step(served.protocol.decoder, waiting, total, least)


def _reports_at_ends(served: ServedCollection, slices: Partial, starts: list[int]) -> SliceReports:
    """Return the reports in the slices of the windows that begin at ``starts``; see ``SliceReports.of``."""
    if not starts or served.spec.window.period is None:
        return SliceReports.of(served, {})
    return SliceReports.of(served, dict(slices.between(min(starts), max(starts) + served.window_size).slices()))
