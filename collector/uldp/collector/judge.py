"""Judge parsed reports: is a report counted, is it late, or is it rejected, and for which reason.

The judge works on columns. It finds the verdict of each report once; each later stage reads that verdict.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from uldp.collector.collections import YEAR_9000, ServedCollection
from uldp.collector.columns import grouped
from uldp.collector.parse import ParsedReports
from uldp.collector.signals import signal_bits
from uldp.schemas.arrays import Mask, Rows, SignalBits, Times
from uldp.schemas.reasons import Reason

#: Shape (n,): ``COUNTED``, ``LATE``, or the verdict of a reason.
Verdicts = npt.NDArray[np.uint8]
COUNTED, LATE = 0, 1
#: The reasons of all other verdicts.
REASONS = dict(enumerate(Reason, LATE + 1))
_VERDICTS = {reason: verdict for verdict, reason in REASONS.items()}
#: The reports of one message may fall into so many time slices: those of a device that was offline for 25 days, with
#: windows of an hour. Without a limit, a batch of 112 kB opened a window for each of its 4,000 reports.
MAX_MESSAGE_SLICES = 600
#: The years in which a time without another time beside it probably is, in milliseconds.
YEAR_2000, YEAR_2100 = 946_684_800_000, 4_102_444_800_000
#: Units that a client may use by mistake instead of milliseconds, and how many of each make one millisecond.
_UNITS = {"seconds": 1e-3, "microseconds": 1e3, "nanoseconds": 1e6}


class Uncounted(NamedTuple):
    """Reports of one collection that share a verdict other than ``COUNTED``."""

    served: ServedCollection
    span: slice  # the rows of all of its reports
    verdict: int
    rows: Rows  # their rows, ascending


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Parsed reports with their verdicts."""

    parsed: ParsedReports
    published: Times  # shape (n,): publish time of the message of each report
    verdicts: Verdicts  # shape (n,): one verdict for each report. A report that is counted may still be a duplicate.
    slices: Times  # shape (n,): start of the time slice that holds each event time
    #: Shape (n,): start of the time slice in whose accounting each report is, late and rejected ones included.
    slots: Times
    signals: SignalBits  # shape (n,): signals about each report's device; see ``signal_bits``
    uncounted: Sequence[Uncounted]  # the late and the rejected reports, by collection and verdict

    def detail(self, row: int) -> str:
        """Return the value for which the report of ``row`` was rejected, and the limit that it breaks."""
        parsed, reason = self.parsed, REASONS[int(self.verdicts[row])]
        served, time, published = parsed.collection(row), int(parsed.event_times[row]), int(self.published[row])
        match reason:
            case Reason.RETIRED_VERSION:
                return f"{served.spec.collection!r} version {served.spec.version}"
            case Reason.INVALID_TIME:
                return f"event time {time}{_other_unit(served, time, published)}"
            case Reason.TOO_EARLY:
                unit = _unit_of_publish_time(served, time, published)
                return f"event time is {time - published} ms ahead of the stream's clock{unit}"
            case Reason.EXPIRED:
                unit = _other_unit(served, time, published)
                return f"event time is {published - time} ms before the stream's clock{unit}"
            case Reason.TOO_MANY_WINDOWS:
                return f"event time {time} is not in the newest {MAX_MESSAGE_SLICES:,} time slices of its message"
        if parsed.fault is not None:
            return parsed.fault[1]
        if reason is Reason.OUT_OF_DOMAIN:
            return f"symbol {parsed.payloads[row]} of {served.mechanism.form.symbols}"
        return f"not an output of {served.spec.mechanism.name}"


def judge(parsed: ParsedReports, published: Times, *, judge_lateness: bool) -> Judged:
    """Find the verdict of each report.

    If several checks fail, the verdict is that of the first in this order: a retired version, a payload that does not
    fit its column, an event time, a payload that the mechanism cannot produce, too many time slices of its message,
    lateness. ``judge_lateness`` is whether a report that was published after its windows closed is late: in a bounded
    job no window has closed.
    """
    served, times = parsed.collections[0], parsed.event_times
    verdicts = np.full(len(times), COUNTED, dtype=np.uint8)
    improbable = np.zeros(len(times), dtype=np.bool_)
    slices, admitted = served.slice_start(times), served.admits(times, published)
    if parsed.fault is not None:
        verdicts[:] = _VERDICTS[parsed.fault[0]]
    else:
        possible, improbable = served.mechanism.inspect(parsed.payloads)
        if not possible.all():
            verdicts[~possible] = _VERDICTS[Reason.IMPOSSIBLE_PAYLOAD]
            if (symbols := served.mechanism.form.symbols) is not None:
                verdicts[parsed.payloads >= symbols] = _VERDICTS[Reason.OUT_OF_DOMAIN]
        if not admitted.all():
            earliest, latest = served.event_times(published)
            verdicts[times < earliest] = _VERDICTS[Reason.EXPIRED]
            verdicts[times > latest] = _VERDICTS[Reason.TOO_EARLY]
            verdicts[(times < 0) | (times >= YEAR_9000)] = _VERDICTS[Reason.INVALID_TIME]
    if (retired := published >= served.closes).any():
        verdicts[retired] = _VERDICTS[Reason.RETIRED_VERSION]
    if parsed.batched and (excess := _excess(parsed, slices, admitted)) is not None:
        verdicts[excess & (verdicts == COUNTED)] = _VERDICTS[Reason.TOO_MANY_WINDOWS]
        admitted &= ~excess
    if judge_lateness:
        late = published >= slices + served.closes_after
        if late.any():
            verdicts[late & (verdicts == COUNTED)] = LATE
    slots, uncounted = slices, []
    if verdicts.any():
        uncounted = [*_uncounted(parsed, verdicts)]
        # The slice of the event time, if the report is admitted and the job still has the state of that slice's
        # windows; else the slice of the publish time. So no device can open windows at will.
        named = admitted & ~retired
        if judge_lateness:
            named &= published < slices + served.amendable_for
        slots = np.where(named, slices, served.slice_start(published))
    observed = times
    if served.spec.event_time != "exact":
        # The device sent the slice alone. Of its times, the nearest to the publish time is taken, so that only what is
        # certain counts as a wrong clock or a delay.
        observed = np.clip(published, slices, slices + (served.slice_size - 1))
    signals = signal_bits(observed, published, improbable)
    return Judged(parsed, published, verdicts, slices, slots, signals, uncounted)


def _uncounted(parsed: ParsedReports, verdicts: Verdicts) -> Iterator[Uncounted]:
    """Yield the reports of each collection with each verdict but ``COUNTED``, which one report or more has."""
    rows, spans = np.flatnonzero(verdicts), [*parsed.spans()]
    of = np.searchsorted(parsed.ends, rows, side="right")
    for number, at in grouped(of << 8 | verdicts[rows]):
        yield Uncounted(*spans[number >> 8], number & 0xFF, rows if at is None else rows[at])


def _excess(parsed: ParsedReports, slices: Times, admitted: Mask) -> Mask | None:
    """Return which reports are before the newest ``MAX_MESSAGE_SLICES`` admitted slices of their message, or None."""
    width = MAX_MESSAGE_SLICES * parsed.collections[0].slice_size
    if len(slices) <= MAX_MESSAGE_SLICES or int(slices.max()) - int(slices.min()) < width:
        return None
    excess = np.zeros(len(slices), dtype=np.bool_)
    starts = np.flatnonzero(np.diff(parsed.origins, prepend=-1))
    ends = np.append(starts[1:], len(slices))
    reports = np.add.reduceat(admitted, starts, dtype=np.intp)
    for message in np.flatnonzero(reports > MAX_MESSAGE_SLICES).tolist():
        first, end = starts[message], ends[message]
        of_message = slices[first:end]
        found = np.unique(of_message[admitted[first:end]])
        if len(found) > MAX_MESSAGE_SLICES:
            excess[first:end] = of_message < found[-MAX_MESSAGE_SLICES]
    return excess if excess.any() else None


def _other_unit(served: ServedCollection, time: int, published: int) -> str:
    """Return a hint that names the unit in which an event time would be admitted, or an empty string if none is."""
    (earliest,), (latest,) = served.event_times(np.array([published], dtype=np.int64))
    return _looks_like("it", lambda number: bool(earliest <= time / number <= latest))


def _unit_of_publish_time(served: ServedCollection, time: int, published: int) -> str:
    """Return a hint that names the unit in which a publish time would admit an event time; empty if none does."""

    def admits(number: float) -> bool:
        (earliest,), (latest,) = served.event_times(np.array([int(published / number)], dtype=np.int64))
        return bool(earliest <= time <= latest)

    return _looks_like(f"the publish time {published}", admits)


def unit_of_time(time: int) -> str:
    """Return a hint that names the unit in which a time alone is one of the years 2000 to 2099; empty if none is."""
    return _looks_like("it", lambda number: YEAR_2000 <= time / number < YEAR_2100)


def _looks_like(what: str, admitted: Callable[[float], bool]) -> str:
    """Return a hint that names the first unit that is admitted, by how many of it make a millisecond."""
    unit = next((unit for unit, number in _UNITS.items() if admitted(number)), None)
    return "" if unit is None else f"; {what} looks like {unit} since 1970, and must be milliseconds"
