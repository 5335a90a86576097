"""From the sum of a window to a pane: with its revision, the pane that it supersedes, and flags that warn about it."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.coders import BytesCoder
from apache_beam.pvalue import PCollection
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec, TimerSpec, on_timer

from uldp.collector.collections import ServedCollection
from uldp.collector.partial import Partial
from uldp.collector.published import History, differs, early_step, has_few_at_ends, public, reports_of
from uldp.collector.repeats import repeats_p_value
from uldp.collector.shared_specs import SharedSpecs
from uldp.mechanisms.inference.plausibility import ALARM_LEVEL, excess_p_value
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.decoder import Decoder
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import IMPROBABLE_TAIL
from uldp.schemas.arrays import Counts
from uldp.schemas.flags import Flag
from uldp.schemas.pane import Accounting, Pane, PaneKind, Signals, Superseded
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.coders import PartialCoder
from uldp.transforms.count import KeyedPartial
from uldp.transforms.internals import Given, WindowedValue
from uldp.transforms.metrics import counter
from uldp.transforms.windows import expires, in_window, pane_of


class WindowSum(NamedTuple):
    """The sum of a window, as its pane publishes it: all cells, or None if no report was counted.

    Attributes:
        ends: See ``SliceReports.at_ends``.
    """

    cells: Counts | None
    accounting: Accounting
    signals: Signals
    ends: Counts | None = None
    most_alike: int = 0

    @classmethod
    def of(cls, partial: Partial, start: int) -> "WindowSum":
        """Return the sum of the window that starts at ``start``, in milliseconds."""
        cells = None if partial.cells is None else as_dense(partial.cells)
        most_alike = 0 if partial.payloads is None else int(as_dense(partial.payloads).max())
        return cls(cells, partial.accounting, partial.signals(start), partial.ends.get(0), most_alike)


def p_values_of(decoder: Decoder, sums: Sequence[WindowSum]) -> list[Mapping[Flag, float]]:
    """Test the cells of windows, see ``Decoder.p_values_of_each``; a window without counted reports has no p-values."""
    counted = [(each.cells, each.accounting.counted) for each in sums if each.cells is not None]
    tested = iter(decoder.p_values_of_each(counted))
    return [{} if each.cells is None else next(tested) for each in sums]


def flags_of(served: ServedCollection, total: WindowSum, p_values: Mapping[Flag, float]) -> Iterator[Flag]:
    """Yield the flags that warn about a window, except ``INCOMPLETE``.

    Args:
        served: The collection.
        total: The sum of the window.
        p_values: See ``p_values_of``.
    """
    limits, (cells, accounting, signals, ends, most_alike) = served.spec.limits, total
    reports = (accounting.counted,) if cells is None else served.protocol.decoder.reports(cells, accounting.counted)
    if max(reports) < limits.min_reports:
        yield Flag.FEW_REPORTS
    elif any(0 < each < limits.min_reports for each in reports):  # a variable without reports has no table to withhold
        yield Flag.FEW_OF_VARIABLE
    if has_few_at_ends(ends, reports, limits.min_reports):
        yield Flag.FEW_AT_ENDS
    if _exceeds(limits.max_rejected_ratio, accounting.rejected, accounting.received):
        yield Flag.REJECTED_RATIO
    if _exceeds(limits.max_duplicate_ratio, accounting.duplicate, accounting.received):
        yield Flag.DUPLICATE_RATIO
    if accounting.missing:
        yield Flag.MISSING_REPORTS
    improbable = signals.improbable_reports
    if improbable and excess_p_value(improbable, accounting.counted, IMPROBABLE_TAIL) < ALARM_LEVEL:
        yield Flag.IMPROBABLE_PAYLOADS
    if most_alike and _repeats_p_value(served, total) < ALARM_LEVEL:
        yield Flag.EQUAL_PAYLOADS
    yield from (flag for flag, p_value in p_values.items() if p_value < ALARM_LEVEL)
    most = limits.max_reports_per_sender
    busiest = signals.busiest_sender
    if most is not None and busiest is not None and busiest.reports > most:
        yield Flag.BUSY_SENDER


def _repeats_p_value(served: ServedCollection, total: WindowSum) -> float:
    return repeats_p_value(total.most_alike, total.accounting.counted, served.mechanism.repeat_probability)


def _exceeds(limit: float | None, part: int, received: int) -> bool:
    """Return whether a part of the received reports is a larger share than a limit, if there is one."""
    return limit is not None and part > limit * received


def seal(
    served: ServedCollection,
    total: WindowSum,
    start: int,
    end: int,
    pane: Pane,
    p_values: Mapping[Flag, float],
) -> Statistic:
    """Make a pane from a sum; ``start`` and ``end`` are the window's, in milliseconds. See ``p_values_of``.

    If no report was counted, the cells are a single 0 and not one for each symbol: late and rejected reports may name
    any number of windows, and a domain may be large. NumPy adds a single 0 to the cells of any other window.
    """
    return Statistic(
        *served.spec.key,
        device_digest=served.device_digest,
        window_start=start,
        window_end=end,
        pane=pane,
        cells=np.zeros(1, dtype=np.int64) if total.cells is None else total.cells,
        accounting=total.accounting,
        flags=tuple(flags_of(served, total, p_values)),
        signals=total.signals,
    )


#: The accounting of an empty pane. Panes accumulate, so each should hold a report. But if the watermark passes the end
#: and the lateness of a window at once, Flink's runner fires one more pane: it is empty, has the index of the on-time
#: pane, and would replace that pane.
NOTHING = Accounting()


@dataclass
class SealCounts(beam.PTransform[PCollection[KeyedPartial], PCollection[Statistic]]):
    """Add window, pane, flags, signals and the superseded pane to each sum that comes out of a window.

    The sums of a bounded collection come in an element for each group of windows, others in one for each pane.

    Attributes:
        specs: The collections to serve.
        simulated_clock: Whether publish times come from a simulation, and so say nothing about the present.
    """

    specs: Iterable[CollectionSpec]
    simulated_clock: bool = False

    def expand(self, sums: PCollection[KeyedPartial]) -> PCollection[Statistic]:
        """Seal the panes; a bounded collection has one pane for each window, which supersedes nothing."""
        if sums.is_bounded:
            seal_fn: beam.DoFn = _SealSpansFn(SharedSpecs.of(self.specs))
        else:
            seal_fn = _SealPanesFn(SharedSpecs.of(self.specs), simulated_clock=self.simulated_clock)
        sealed: PCollection[Statistic] = sums | "SealPane" >> beam.ParDo(seal_fn)
        return sealed


class _Sealer(beam.DoFn):
    """Seals panes, and counts them in the job's metrics."""

    def __init__(self, specs: SharedSpecs) -> None:
        self._specs = specs
        self._panes, self._windows = counter("panes"), counter("windows")


@beam.typehints.with_input_types(KeyedPartial)
@beam.typehints.with_output_types(Statistic)
class _SealSpansFn(_Sealer):
    """Seals the only pane of each window."""

    #: The cells of the panes to test together. A collection has few windows, and to test few takes as long as many.
    AT_ONCE = 1 << 16

    def start_bundle(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._waiting: defaultdict[LdpProtocol, list[KeyedPartial]] = defaultdict(list)
        self._room = self.AT_ONCE

    def process(self, element: KeyedPartial) -> Iterable[WindowedValue] | None:
        group, span = element
        served = self._specs.served[group]
        self._waiting[served.protocol].append(element)
        self._room -= len(span) * served.mechanism.statistic_size
        return None if self._room > 0 else self._seal()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        return self._seal()

    def _seal(self) -> Iterator[WindowedValue]:
        waiting = self._waiting
        self._clear()
        for protocol, spans in waiting.items():
            panes = [
                (served, start, total)
                for group, span in spans
                for slot, partial in span.slices()
                for served, start in [self._specs.groups.find(group, slot)]
                if (total := WindowSum.of(partial, start)).accounting != NOTHING
            ]
            p_values = p_values_of(protocol.decoder, [total for _, _, total in panes])
            for (served, start, total), tested in zip(panes, p_values, strict=True):
                end = start + served.window_size
                yield in_window(start, end, seal(served, total, start, end, _ONLY, tested))
            self._panes.inc(len(panes))
            self._windows.inc(len(panes))


#: The pane of a window of a bounded job.
_ONLY = Pane(PaneKind.ON_TIME, 0)


@beam.typehints.with_input_types(KeyedPartial)
@beam.typehints.with_output_types(Statistic)
class _SealPanesFn(_Sealer):
    """Seals the panes of a window one after the other, and remembers what was published."""

    HISTORY = ReadModifyWriteStateSpec("history", BytesCoder())
    #: What an early pane may publish later, see ``early_step``.
    WAITING = ReadModifyWriteStateSpec("waiting", PartialCoder())
    EXPIRY = TimerSpec("expiry", TimeDomain.WATERMARK)

    def __init__(self, specs: SharedSpecs, *, simulated_clock: bool) -> None:
        super().__init__(specs)
        self._simulated_clock = simulated_clock

    def process(
        self,
        element: KeyedPartial,
        window: Given = beam.DoFn.WindowParam,
        info: Given = beam.DoFn.PaneInfoParam,
        history: Given = beam.DoFn.StateParam(HISTORY),
        waiting: Given = beam.DoFn.StateParam(WAITING),
        expiry: Given = beam.DoFn.TimerParam(EXPIRY),
    ) -> Iterator[Statistic]:
        key, total = element
        if total.accounting == NOTHING:
            return
        served, pane, past = self._specs.served[key], pane_of(info), History.unpack(history.read())
        expiry.set(expires(served.spec.window, window.max_timestamp()))
        early = pane.kind is PaneKind.EARLY
        partial = self._early(served, pane, past, total, waiting) if early else total
        if partial is None:
            return
        if not early:
            waiting.clear()
        sealed, past = self._sealed(served, partial, window, pane, past)
        history.write(past.pack())
        self._panes.inc()
        self._windows.inc(pane.kind is PaneKind.ON_TIME)
        yield sealed

    def _early(
        self, served: ServedCollection, pane: Pane, past: History, total: Partial, waiting: Any
    ) -> Partial | None:
        """Return what an early pane publishes, if anything."""
        least = served.spec.limits.min_reports
        if least == 1:
            return total
        # A pane that comes behind a newer one would differ from it by few reports. On Prism, a late report fires an
        # early pane, and then one of the same reports that is not.
        if past.closed or not past.precedes(pane.revision):
            return None
        before = waiting.read()
        step = early_step(served.protocol.decoder, before, total, least)
        if step.waiting is not before:
            waiting.write(step.waiting)
        return step.published

    def _sealed(
        self, served: ServedCollection, partial: Partial, window: Any, pane: Pane, past: History
    ) -> tuple[Statistic, History]:
        """Seal a pane, and return the history with it."""
        start, end = window.start.micros // 1000, window.end.micros // 1000
        total = WindowSum.of(partial, start)
        (p_values,) = p_values_of(served.protocol.decoder, [total])
        sealed = seal(served, total, start, end, pane, p_values)
        # Only a drain lets the watermark pass a window's end before the clock does.
        drained = pane.kind is PaneKind.ON_TIME and time.time() * 1000 < sealed.window_end
        if drained and not self._simulated_clock:
            sealed = replace(sealed, flags=(*sealed.flags, Flag.INCOMPLETE))
        reports, newest = reports_of(served.protocol.decoder, partial), past.precedes(pane.revision)
        now, least = Superseded(pane.revision, sealed.n), served.spec.limits.min_reports
        exact = least == 1 or served.spec.window.exact_late
        if not exact and not (newest and differs(past.reports, reports, least, or_equals=True)):
            held = replace(sealed, flags=(*sealed.flags, Flag.FEW_MORE), supersedes=past.held)
            return held, past.after_held(now) if newest else past
        if not newest:  # a later pane has superseded this one already
            return sealed, past
        published = () if Flag.FEW_AT_ENDS in sealed.flags else public(reports, least)
        return replace(sealed, supersedes=past.last), past.after(now, published, closed=pane.kind is not PaneKind.EARLY)

    @on_timer(EXPIRY)
    def forget(
        self, history: Given = beam.DoFn.StateParam(HISTORY), waiting: Given = beam.DoFn.StateParam(WAITING)
    ) -> None:
        """Free the state when the window's own state is freed."""
        history.clear()
        waiting.clear()
