"""What the windows of a spec cost, in windows, files and bytes: warnings of specs whose numbers do not fit together."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from uldp.schemas.specs.collection import MAX_TIME_SLICES, CollectionSpec
from uldp.schemas.specs.durations import format_duration

#: A number of windows or of early estimates above this is probably a mistake in a unit.
MANY = 1_000
#: Bytes a day, or bytes in memory, above this deserve a line.
MANY_BYTES = 10 << 30
#: A pane is a file of results and a file of estimates.
_FILES_OF_A_PANE = 2
_ID_BYTES, _CELL_BYTES = 16, 8
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Costs:
    """What a collection costs while it runs."""

    windows_of_a_report: int  # the windows that count each report
    open_windows: int  # the windows that are open at one time, with those that wait for late reports
    early_panes: int  # the early estimates of each window
    future_windows: int  # the windows that a clock may be ahead by
    past_windows: int  # the windows that an old report may open
    windows_a_day: int  # the windows that end in a day
    panes_a_day: int  # the estimates of a day for each estimator, early ones included
    files_a_day: int
    id_bytes: int  # bytes of the ids that a job remembers, at the number of users in each window
    cell_bytes_a_day: int  # bytes of the estimates of a day

    @classmethod
    def of(cls, spec: CollectionSpec, users: int) -> "Costs":
        """Find the costs of a spec with so many users in each window."""
        window, step = spec.window, spec.window.slice
        lasting = window.size + window.allowed_lateness
        early = window.size // window.early_every if window.early_every is not None else 0
        windows = math.ceil(_DAY / step)
        panes = math.ceil(_DAY / step * (1 + early))
        cells = sum(max(variable.size, len(variable.candidates), 1) for variable in spec.variables.values())
        return cls(
            windows_of_a_report=window.size // step,
            open_windows=math.ceil(lasting / step),
            early_panes=early,
            future_windows=math.ceil(spec.limits.max_clock_skew / step),
            past_windows=math.ceil(spec.max_age / step),
            windows_a_day=windows,
            panes_a_day=panes,
            files_a_day=panes * _FILES_OF_A_PANE,
            id_bytes=round(_ID_BYTES * users * (lasting / window.size)),
            cell_bytes_a_day=panes * cells * len(spec.estimators) * _CELL_BYTES,
        )


def costly(spec: CollectionSpec, users: int) -> Iterator[str]:
    """Yield a line for each number of a spec that makes its windows cost more than their author probably knows."""
    costs, window = Costs.of(spec, users), spec.window
    size, step = format_duration(window.size), format_duration(window.slice)
    daily = f"{costs.panes_a_day:,} estimates and {costs.files_a_day:,} files a day"
    if costs.windows_of_a_report > MANY:
        yield (
            f"window.period, {step}: each report counts in {costs.windows_of_a_report:,} windows, and there are"
            f" {daily}; make it longer"
        )
    elif costs.windows_a_day > MANY:
        yield (
            f"window.{'size' if window.period is None else 'period'}, {step}: there are {costs.windows_a_day:,}"
            f" windows, {daily}; make it longer, or join files with uldp compact"
        )
    if window.early_every is not None and costs.early_panes > MANY:
        yield (
            f"window.early_every, {format_duration(window.early_every)}: each window of {size} has"
            f" {costs.early_panes:,} early estimates, and there are {daily}; make it longer"
        )
    waiting = window.allowed_lateness > window.size
    if waiting and (costs.open_windows > MANY or costs.id_bytes > MANY_BYTES):
        yield (
            f"window.allowed_lateness, {format_duration(window.allowed_lateness)}: {costs.open_windows:,} windows stay"
            f" open, and the ids of their reports take {_bytes(costs.id_bytes)} at {users:,} users in a window; make it"
            " shorter, and backfill what comes later"
        )
    if costs.future_windows > MANY and "max_clock_skew" in spec.limits.model_fields_set:
        yield (
            f"limits.max_clock_skew, {format_duration(spec.limits.max_clock_skew)}: a sender can open"
            f" {costs.future_windows:,} windows of the future; make it shorter"
        )
    if costs.past_windows > MAX_TIME_SLICES and spec.limits.max_age is not None:
        yield (
            f"limits.max_age, {format_duration(spec.limits.max_age)}: a sender can open {costs.past_windows:,} windows"
            " of the past; make it shorter"
        )
    if costs.cell_bytes_a_day > MANY_BYTES:
        yield (
            f"the estimates of a day have {_bytes(costs.cell_bytes_a_day)}, in {costs.panes_a_day:,} tables of each"
            " estimator: take longer windows, fewer early estimates, estimators or values"
        )


def _bytes(number: int) -> str:
    """Write a number of bytes with a unit.

    >>> _bytes(1_600_000), _bytes(20_000_000_000_000)
    ('1.6 MB', '20,000 GB')
    """
    return f"{number / 1e9:,.0f} GB" if number >= 1e10 else f"{number / 1e6:,.1f} MB"
