"""Warnings about valid specs that probably do not say what their author means, and about results of such a spec."""

import math
from collections.abc import Iterator, Sequence
from datetime import timedelta

from uldp.collector.ends import coarser
from uldp.mechanisms.catalog import build_variable
from uldp.pipelines.costs import costly
from uldp.schemas.pane import PaneHeader
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import format_duration
from uldp.schemas.specs.lookalikes import alike, unseen
from uldp.schemas.specs.mistakes import ascii_quote
from uldp.schemas.specs.variable import Variable

#: A window with fewer reports has no estimate that is of use.
_FEW_REPORTS = 10
#: Up to so many of these windows may come from devices that were offline.
_FEW_WINDOWS = 100
#: With so many reports, 40 % come after the end of their windows by chance only if far more than a quarter usually do.
_MANY_REPORTS, _AFTER = 300, 0.4
#: A line names so many labels.
_NAMED = 3
#: A budget above this protects hardly anybody.
_LARGE_EPSILON = 8.0


def caveats(spec: CollectionSpec, users: int) -> Iterator[str]:
    """Yield a line for each probable mistake in a spec, given the number of users who report in a window."""
    window, least = spec.window, spec.limits.min_reports
    if window.early_every is not None and window.early_every > window.size:
        yield (
            f"window.early_every, {format_duration(window.early_every)}, is longer than the window, "
            f"{format_duration(window.size)}: no estimate comes early; make it shorter, or leave it out"
        )
    elif window.early_every is not None and least > 1 and users < 2 * least:
        yield (
            f"window.early_every: an early pane needs {2 * least:,} reports in its window, twice limits.min_reports, "
            f"and there are {users:,} users; leave it out"
        )
    yield from _few_at_ends(spec, users)
    if window.exact_late and window.allowed_lateness and least > 1:
        yield (
            "window.exact_late: each late pane may differ from the one before by a single report, so whoever reads the "
            f"counts reads the payload of that user, which epsilon alone protects{_in_clear(spec)}; leave it out to "
            f"publish late panes by {least:,} reports"
        )
    yield from costly(spec, users)
    yield from _large_budgets(spec)
    for attribute, variable in spec.variables.items():
        of = f"{attribute}: " if attribute else ""
        yield from (of + line for line in _caveats_of(variable, users, spec.estimators[0]))


def _few_at_ends(spec: CollectionSpec, users: int) -> Iterator[str]:
    """Yield a line if slices of sliding windows have too few reports for most windows to be published."""
    window, least = spec.window, spec.limits.min_reports
    slices = window.size // window.slice
    means = {length: users * length / slices for length in coarser(slices)}
    # Numbers of reports vary from slice to slice; 93 % have no more than 1.5 standard deviations less than the mean.
    enough = [length for length, mean in means.items() if mean - 1.5 * math.sqrt(mean) >= least]
    length = min(enough, default=0)
    if least > 1 and users >= least and length != 1:
        most = (
            f"most that are published begin every {format_duration(length * window.slice)}" if length else "few will be"
        )
        yield (
            f"window.period, {format_duration(window.slice)}: at {users:,} users in each window, a slice has about "
            f"{means[1]:,.0f} reports, and a window needs limits.min_reports, {least:,}, in its first and its last; "
            f"{most}; make period longer"
        )


def _in_clear(spec: CollectionSpec) -> str:
    """Return a text if some values are not sensitive; a report may then name one as it is."""
    partly = any(not variable.sensitive_mask.all() for variable in spec.variables.values())
    return ", and values that are not sensitive may be in it as they are" if partly else ""


def _large_budgets(spec: CollectionSpec) -> Iterator[str]:
    for key, epsilon, reports in (
        ("epsilon", spec.mechanism.epsilon, "one report"),
        ("lasting_epsilon", spec.mechanism.lasting_epsilon, "two or more reports of one value"),
    ):
        if epsilon is not None and epsilon > _LARGE_EPSILON:
            yield (
                f"mechanism.{key} is {epsilon:g}: a reader of {reports} has odds of up to e^{epsilon:g} = "
                f"{math.exp(epsilon):,.0f} to 1 between two values; {_LARGE_EPSILON:g} or less leaves a doubt"
            )


def _caveats_of(variable: Variable, users: int, estimator: str) -> Iterator[str]:
    """Yield a line for each probable mistake in one variable of a spec."""
    yield from _hard_to_see(variable)
    for tag in variable.tags:
        if _is_value(variable, tag.name):
            yield f"tag {tag.name} has the name of a value: nobody can tell them apart in results; rename the tag"
    n = max(round(variable.share * users), 1)
    protocol = build_variable(variable)
    yield from protocol.mechanism.warnings(n)
    yield from protocol.decoder.warnings(n, users, estimator)


def _hard_to_see(variable: Variable) -> Iterator[str]:
    """Yield lines for labels or candidates that nobody can see, or tell from one another."""
    kind, texts = ("candidate", variable.candidates) if variable.candidates else ("label", variable.names or ())
    pairs = [f"{ascii_quote(first)} and {ascii_quote(second)}" for first, second in alike(texts)]
    if pairs:
        yield (
            f"{kind}s that look like another and differ, {len(pairs):,} in all ({_some(pairs)}): reports of one value"
            " are counted apart; write it in one way, as devices do"
        )
    if odd := [ascii_quote(text) for text in unseen(texts)]:
        yield (
            f"{kind}s that are empty, begin or end with a space, or have characters that nobody sees, {len(odd):,} in"
            f" all ({_some(odd)}): remove what is not meant"
        )


def _some(texts: Sequence[str]) -> str:
    """Join the first texts, and say if there are more."""
    return ", ".join(texts[:_NAMED]) + (", ..." if len(texts) > _NAMED else "")


def few_reports(panes: Sequence[PaneHeader]) -> str | None:
    """Return a line if most windows of a collection count few reports: a sender may have chosen their event times."""
    counted = [pane.n for pane in panes if pane.n]
    few = sum(n < _FEW_REPORTS for n in counted)
    if few <= max(_FEW_WINDOWS, len(counted) / 2):
        return None
    return (
        f"warning: {few:,} of {len(counted):,} windows count fewer than {_FEW_REPORTS} reports: windows are too short, "
        "or a sender has made up event times; take longer windows, or lower limits.max_age"
    )


def coarse_times(spec: CollectionSpec, panes: Sequence[PaneHeader]) -> str | None:
    """Return a line if devices seem to round event times by a longer slice than that of fixed windows.

    Their reports then are in windows some slices apart, and come after the end of the window. Neither is proof alone:
    users may act at such times, and devices may be offline. If a tenth of reports are of the other slices, or a quarter
    at the most come after the end of theirs, all of this happens with a probability below 10^-8. Sliding windows
    that begin or end with an empty slice have a flag.
    """
    filled = [pane for pane in panes if pane.accounting.counted + pane.accounting.late]
    if spec.window.period is not None or spec.event_time == "exact":
        return None
    apart = timedelta(milliseconds=math.gcd(*(pane.window_start - filled[0].window_start for pane in filled)))
    reports = sum(sum(pane.signals.past) + sum(pane.signals.early) for pane in filled)
    after = sum(sum(pane.signals.past[1:]) for pane in filled)
    if apart <= spec.window.size or reports < _MANY_REPORTS or after < _AFTER * reports:
        return None
    return (
        f"warning: all windows with reports begin {format_duration(apart)} apart, or multiples of it, and"
        f" {after / reports:.0%} of the reports came after their window had ended: devices may round event times by"
        f" such slices; count them in windows of {format_duration(apart)}, and give windows of"
        f" {format_duration(spec.window.size)} a new version"
    )


def _is_value(variable: Variable, name: str) -> bool:
    try:
        variable.read_value(name)
    except ValueError:
        return False
    return True
