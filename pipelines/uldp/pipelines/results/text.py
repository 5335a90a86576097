"""Specs and results as readable text, which ``uldp check`` and ``uldp show`` print."""

import calendar
import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.inference.shuffle import forecast_shuffled
from uldp.mechanisms.protocol.decoder import DEPENDS_ON_N
from uldp.mechanisms.protocol.mechanism import Mechanism, Privacy
from uldp.pipelines.results.slices import without_slices
from uldp.pipelines.results.tables import tables_text
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import SKEW_RANGES, Accounting, PaneHeader, Signals
from uldp.schemas.records import iso
from uldp.schemas.shuffled import Shuffled
from uldp.schemas.specs.budget import Budget
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import format_duration
from uldp.schemas.specs.mechanism_family import several_epsilons
from uldp.schemas.specs.mistakes import printable
from uldp.schemas.specs.slices import attributes_of, slice_text

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def spec_text(spec: CollectionSpec, users: int) -> str:
    """Return a block of lines that explains a spec, with the expected errors for a given number of users."""
    protocol = build_protocol(spec)
    form, guarantee = protocol.mechanism.form, protocol.mechanism.guarantee
    rows = [f"{spec.collection} version {spec.version}"]
    budget = "no privacy" if guarantee.epsilon is None else f"epsilon {guarantee.epsilon:.6g} nats a report"
    budget = f"up to {budget}" if guarantee.terms else budget
    budget += f" and {guarantee.lasting:.6g} for two or more of one value" if guarantee.lasting is not None else ""
    rows.append(f"  mechanism   {spec.mechanism.name}, {budget}, over {_domain_text(spec)}")
    rows += [headed("grid", text) for text in _grids_text(spec)]
    if numbers := list(_auto_text(spec)):
        rows.append(f"  auto        {', '.join(numbers)}")
    if guarantee.epsilon is not None:
        rows.append(f"  odds        {_odds_text(guarantee.epsilon, guarantee.lasting, guarantee.privacy)}")
    if guarantee.terms:
        rows.append(headed(guarantee.privacy, guarantee.terms))
    if spec.by is not None:
        counted = " x ".join(f"{name} ({len(values)})" for name, values in spec.by.items())
        rows.append(headed("by", f"{counted}; {guarantee.public}"))
    rows += [headed(*fact) for fact in protocol.mechanism.device_facts()]
    facts = list(protocol.decoder.describe(users, spec.estimators[0]))
    # Facts that depend on the number of users come last; those of a record stay with their attribute.
    last = [fact for fact in facts if "" in spec.variables and fact[0] in DEPENDS_ON_N]
    rows += [headed(*fact) for fact in facts if fact not in last]
    rows.append(f"  report      {'one symbol' if form.width is None else f'{form.width:,} bytes'}")
    if protocol.mechanism.memory:
        rows.append("  memory      each device keeps its response to a value, so errors of its windows are correlated")
    if spec.budget is not None:
        year = spec.budget.epsilon * -(-timedelta(days=365) // spec.budget.every)
        held = f"up to {year:g} in 365d; honest devices refuse more"
        rows.append(f"  budget      {spec.budget} for each user, over all collections, {held}")
    elif guarantee.epsilon is not None:
        what = "report" if guarantee.lasting is None else "value that changes"
        rows.append(f"  budget      none: each further {what} of a user spends as much again; --days sums it up")
    period = f" every {format_duration(spec.window.period)}" if spec.window.period else ""
    early = f", early every {format_duration(spec.window.early_every)}" if spec.window.early_every else ""
    late = f", {format_duration(spec.window.allowed_lateness)} for late ones"
    late += ", each in a pane at once" if spec.window.exact_late else ""
    exact = ", with exact event times" if spec.event_time == "exact" else ""
    rows.append(f"  windows     {format_duration(spec.window.size)}{period}{_begins(spec)}{early}{late}{exact}")
    rows.append(f"  estimators  {', '.join(spec.estimators)}")
    if spec.assume_forgers is not None:
        rows.append(headed("forgers", _forgers_text(spec.assume_forgers, record="" not in spec.variables)))
    rows.append(f"  limits      {', '.join(_limits(spec))}")
    rows += [headed(*fact) for fact in last]
    rows += [headed("tables", text) for text in _forecast_text(spec, protocol.mechanism, users)]
    return "\n".join(rows)


def _begins(spec: CollectionSpec) -> str:
    """Say when windows begin that are of whole days or weeks, or have an offset: they are counted from 1970-01-01."""
    slices, first = spec.window.slice, datetime(1970, 1, 1, tzinfo=UTC) + spec.window.offset
    if slices % timedelta(days=1):
        offset = format_duration(spec.window.offset)
        return f" from {offset} after multiples of {format_duration(slices)}" if spec.window.offset else ""
    day = f"{calendar.day_name[first.weekday()]} " if not slices % timedelta(days=7) else ""
    return f" from {day}{first:%H:%M:%S} UTC".replace(":00 UTC", " UTC")


def _forecast_text(spec: CollectionSpec, mechanism: Mechanism, users: int) -> Iterator[str]:
    """Say what readers of the tables alone are given to expect; nothing without any privacy."""
    names = (*spec.mechanism.parts, *spec.mechanism.user_groups)
    forged = math.ceil((spec.assume_forgers or 0.0) * users)
    seen = f"only those of a window of {users:,} users, with ids, times and senders dropped by a trusted party"
    reader = f"whoever sees {seen}"
    if mechanism.guarantee.epsilon is None:
        return
    of_slice = mechanism
    if spec.slices is not None:
        of_slice, users = mechanism.parts[0], users // len(spec.slices)
        reader += f", in slices of {users:,} users each"
    for of, promise in forecast_shuffled(of_slice, names, users, forged=forged):
        if promise is None:
            given = f"{of[0]}: as much as its epsilon" if of else "as much as epsilon"
            yield f"{reader}, may be given {given}: the theorem of shuffling does not cover it"
        else:
            uldp = mechanism.guarantee.privacy is Privacy.ULDP
            equally = ", about two protected values, if all values are held equally often" if uldp else ""
            yield f"{reader}, is given {_promise(promise)}{equally}"


def headed(heading: str, text: str) -> str:
    """Return a line of a block: what it is about, and its text."""
    return f"  {heading:<11} {text}"


def _forgers_text(share: float, *, record: bool) -> str:
    """Say which reports the wider intervals of a spec allow for."""
    where = ", and all of them be about one attribute" if record else ""
    return (
        f"intervals are published beside the others that allow {100 * share:.3g} % of all reports to be forged{where}"
    )


def _odds_text(epsilon: float, lasting: float | None, privacy: Privacy) -> str:
    """Say how far reports may move the odds of two values; under ULDP for a protected value, not against it."""

    def moved(budget: float) -> str:
        likely = 100 / (1 + math.exp(-budget))
        most = "more than 99.99" if likely > 99.99 else f"{likely:.4g}"
        return f"from 50 % to {most} % at the most, odds of {math.exp(budget):,.3g} to 1"

    uldp = privacy is Privacy.ULDP
    what = "raises a guess of a protected value against any other" if uldp else "moves a guess between protected values"
    one = f"one report {what} {moved(epsilon)}"
    return one if lasting is None else f"{one}; two or more of one value {moved(lasting)}"


def _auto_text(spec: CollectionSpec) -> Iterator[str]:
    """Yield the numbers for which auto stands."""
    for name, variable in spec.variables.items():
        given, known = (of.model_dump(warnings=False) for of in (variable.mechanism, variable.parameters))
        for key in (key for key in known if known[key] != given[key]):
            yield f"{f'{name}: ' if name else ''}{key} {known[key]:g}"


def _grids_text(spec: CollectionSpec) -> Iterator[str]:
    """Say how maps show the values of each grid."""
    for name, variable in spec.variables.items():
        if columns := variable.columns:
            of = f"{name}: " if name else ""
            rows = number_of(variable.size // columns, "row")
            yield f"{of}{rows} of {columns:,}, row 0 at the bottom; for maps alone"


def _domain_text(spec: CollectionSpec) -> str:
    """Describe what a device holds, in a few words."""
    if "" not in spec.variables:
        return f"one of {len(spec.variables)} attributes: {', '.join(spec.variables)}"
    variable = spec.variables[""]
    names = ", ".join(tag.name for tag in variable.tags)
    return variable.kind.text + (f" and {number_of(len(variable.tags), 'tag')} ({names})" if names else "")


def _limits(spec: CollectionSpec) -> Iterator[str]:
    limits = spec.limits
    yield f"{limits.min_reports:,} reports or more"
    if limits.max_rejected_ratio is not None:
        yield f"{limits.when_exceeded} above {limits.max_rejected_ratio:.3g} rejected"
    if limits.max_duplicate_ratio is not None:
        yield f"flag above {limits.max_duplicate_ratio:.3g} duplicate"
    if limits.max_reports_per_sender is not None:
        yield f"{'reject' if limits.cap_senders else 'flag'} above {limits.max_reports_per_sender:,} of a sender"
    yield f"clocks up to {format_duration(limits.max_clock_skew)} ahead"
    yield f"reports up to {format_duration(spec.max_age)} old"


def estimate_text(estimate: Estimate, spec: CollectionSpec, *, top: int = 10) -> str:
    """Return an estimate as a block of lines, of each table of shares the ``top`` most frequent values."""
    sentence, ends = shuffled_text(estimate)
    lines = [
        f"{_window_name(estimate)}  {estimate.estimator}",
        f"  n {estimate.n:,}  {_pane_text(estimate)}  {mechanism_text(estimate)}",
        *(f"  {line}" for line in over_time(estimate.epsilon, estimate.lasting_epsilon, estimate.budget)),
        *([f"  {sentence}"] if sentence else []),
        *(f"    {end}" for end in ends),
        f"  {accounting_text(estimate.accounting)}",
        *_notes(estimate),
        *tables_text(estimate, spec, top=top),
    ]
    return "\n".join(map(printable, lines))


def mechanism_text(estimate: Estimate) -> str:
    """Return the mechanism of an estimate and its epsilon."""
    if estimate.epsilon is None:
        return f"{estimate.mechanism}, no privacy"
    most = "up to " if several_epsilons(estimate.mechanism) else ""
    return f"{estimate.mechanism}, {most}epsilon {estimate.epsilon:g}"


def over_time(epsilon: float | None, lasting: float | None, budget: Budget | None) -> Iterator[str]:
    """Yield what is guaranteed about all reports of one user together; nothing if there is no guarantee about one."""
    if epsilon is None:
        return
    if lasting is not None:
        yield (
            f"one report of a value spends at most epsilon {epsilon:g}, two or more together at most {lasting:g};"
            " values of one user add up"
        )
    if budget is not None:
        yield f"devices refuse reports with which a user would spend more than {budget}, over all collections"
    if lasting is None and budget is None:
        yield "reports of one user add up: t reports spend t times epsilon"


def shuffled_text(estimate: Estimate) -> tuple[str, list[str]]:
    """Return what is promised, if anything, to who sees only tables, and its end by attribute or level."""
    if estimate.epsilon is None:
        return "", []
    if not estimate.shuffle:
        reader = "whoever sees only these tables may be given as much as epsilon"
        return f"{reader}: the theorem of shuffling does not cover {estimate.mechanism}", []
    weakest: dict[tuple[str, ...], Shuffled] = {}
    for each in estimate.shuffle:
        about = attributes_of(each.of)
        weakest[about] = max(weakest.get(about, each), each, key=lambda promise: promise.epsilon)
    given = {about: _promise(each) for about, each in weakest.items()}
    parts = [] if () in given else [table.of for table in without_slices(estimate).tables if table.of]
    without = {of: f"{of[0]}: as much as its epsilon" for of in parts}
    reader = "whoever sees only these tables, with ids, times and senders dropped by a trusted party, is given"
    return f"{reader}, in this window", [*(without | given).values()]


def _promise(shuffled: Shuffled) -> str:
    about, smallest = attributes_of(shuffled.of), slice_text(shuffled.of)
    of = f"{about[0]}: " if about else ""
    of += f"in the smallest slice, {smallest}, " if smallest else ""
    reports = number_of(shuffled.reports, "protected report")
    return f"{of}epsilon {shuffled.epsilon:g} (delta {shuffled.delta:g}) by one of {reports}"


#: Why a pane has no estimate: its window has none that is published, or the pane is held back.
UNPUBLISHED, HELD_BACK = "no estimate is published", "late reports wait until more have come"


def unpublished_text(pane: PaneHeader, why: str) -> str:
    """Return a pane without an estimate, and why it has none, as a block of lines."""
    lines = [
        f"{_window_name(pane)}  {why}",
        f"  n {pane.n:,}  {_pane_text(pane)}",
        f"  {accounting_text(pane.accounting)}",
        *_notes(pane),
    ]
    return "\n".join(map(printable, lines))


def _window_name(pane: PaneHeader) -> str:
    return f"{pane.collection} v{pane.version}  {window_text(pane)}"


def _pane_text(pane: PaneHeader) -> str:
    return f"pane {pane.pane.kind}, revision {pane.pane.revision}"


def _notes(pane: PaneHeader) -> Iterator[str]:
    """Yield the further lines of a pane: its flags, the pane it supersedes, clock skew, and the busiest sender."""
    signals = pane.signals
    if pane.flags:
        yield f"  flags: {', '.join(pane.flags)}"
    if pane.supersedes is not None:
        yield f"  supersedes revision {pane.supersedes.revision}, n {pane.supersedes.n:,}"
    yield from (f"  {line}" for line in clocks_text(signals))
    if signals.busiest_sender is not None:
        reports = number_of(signals.busiest_sender.reports, "report")
        yield f"  busiest sender: {signals.busiest_sender.digest}, {reports}"


def clocks_text(signals: Signals) -> Iterator[str]:
    """Yield how far event times are before and ahead of publish times; nothing without reports."""
    for direction, counts in (("past", signals.past), ("early", signals.early)):
        if counts:
            yield f"clocks {direction}: {number_of(sum(counts), 'report')}, {skew_text(counts)}"


def skew_text(counts: Sequence[int]) -> str:
    """Return bounds of the clock skew of 50 and 99 % of reports, by their numbers below 1 s, 2 s, 4 s and so on."""
    return f"half by {skew_bound(skew_range(counts, 0.5))}, 99 % by {skew_bound(skew_range(counts, 0.99))}"


def skew_range(counts: Sequence[int], share: float) -> int:
    """Return the range of clock skew that holds this share of the reports, with those before it.

    >>> skew_range([5, 4, 1], 0.5), skew_range([5, 4, 1], 0.99)
    (0, 2)
    """
    below = [*accumulate(counts)]
    return bisect_left(below, math.ceil(share * below[-1])) if below else 0


def skew_bound(skew: int) -> str:
    """Write the upper end of a range of clock skew.

    >>> skew_bound(0), skew_bound(3), skew_bound(23)
    ('less than 1s', 'less than 8s', '48d or more')
    """
    return _below(2**skew) if skew < SKEW_RANGES - 1 else "48d or more"


def _below(seconds: int) -> str:
    """Write a bound in the largest unit that is shorter than the bound, rounded up."""
    unit, length = next((unit, length) for unit, length in _UNITS if seconds > length or length == 1)
    return f"less than {-(-seconds // length)}{unit}"


def window_text(pane: PaneHeader) -> str:
    """Write a window as text, with the day of its end only if that differs: ``2026-01-05 10:00 to 11:00 UTC``."""
    start, end = minute_text(pane.window_start), minute_text(pane.window_end)
    return f"{start} to {end.removeprefix(start[:11])} UTC"


def minute_text(time: int) -> str:
    """Write a time in milliseconds without a zone, and without seconds if there are none.

    >>> minute_text(1767258000000)
    '2026-01-01 09:00'
    """
    return iso(time).replace("T", " ").removesuffix("Z").removesuffix(":00")


def accounting_text(accounting: Accounting) -> str:
    """Write the accounting law with its figures, and add a warning if it does not hold."""
    text = (
        f"{accounting.received:,} received = {accounting.counted:,} counted + {accounting.duplicate:,} duplicate"
        f" + {accounting.late:,} late + {accounting.rejected:,} rejected"
    )
    if accounting.missing:
        text += f"; up to {number_of(accounting.missing, 'message')} missing"
    return text if accounting.closes() else f"{text} (does not add up: reports were lost or counted twice)"


def number_of(number: int, noun: str) -> str:
    """Write a number and its noun, singular or plural.

    >>> number_of(1, "window"), number_of(1200, "window")
    ('1 window', '1,200 windows')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
