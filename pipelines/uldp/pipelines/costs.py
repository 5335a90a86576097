"""What the windows of a spec cost, in windows, files and bytes: warnings of specs whose numbers do not fit together."""

import math
from collections.abc import Iterator
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


def costly(spec: CollectionSpec, users: int) -> Iterator[str]:
    """Yield a line for each number of a spec that makes its windows cost more than their author probably knows."""
    window, limits = spec.window, spec.limits
    size, step, lasting = window.size, window.slice, window.size + window.allowed_lateness
    early = size // window.early_every if window.early_every is not None else 0
    panes = math.ceil(_DAY / step * (1 + early))
    daily = f"{panes:,} estimates and {panes * _FILES_OF_A_PANE:,} files a day"
    if size // step > MANY:
        yield (
            f"window.period, {format_duration(step)}: each report counts in {size // step:,} windows, and there are"
            f" {daily}; make it longer"
        )
    elif (windows := math.ceil(_DAY / step)) > MANY:
        yield (
            f"window.{'size' if window.period is None else 'period'}, {format_duration(step)}: there are {windows:,}"
            f" windows, {daily}; make it longer, or join files with uldp compact"
        )
    if window.early_every is not None and early > MANY:
        yield (
            f"window.early_every, {format_duration(window.early_every)}: each window of {format_duration(size)} has"
            f" {early:,} early estimates, and there are {daily}; make it longer"
        )
    waiting, id_bytes = math.ceil(lasting / step), round(_ID_BYTES * users * (lasting / size))
    if window.allowed_lateness > size and (waiting > MANY or id_bytes > MANY_BYTES):
        yield (
            f"window.allowed_lateness, {format_duration(window.allowed_lateness)}: {waiting:,} windows stay"
            f" open, and the ids of their reports take {_bytes(id_bytes)} at {users:,} users in a window; make it"
            " shorter, and backfill what comes later"
        )
    if (ahead := math.ceil(limits.max_clock_skew / step)) > MANY and "max_clock_skew" in limits.model_fields_set:
        yield (
            f"limits.max_clock_skew, {format_duration(limits.max_clock_skew)}: a sender can open"
            f" {ahead:,} windows of the future; make it shorter"
        )
    if (past := math.ceil(spec.max_age / step)) > MAX_TIME_SLICES and limits.max_age is not None:
        yield (
            f"limits.max_age, {format_duration(limits.max_age)}: a sender can open {past:,} windows"
            " of the past; make it shorter"
        )
    cells = sum(max(variable.size, len(variable.candidates), 1) for variable in spec.variables.values())
    if (nbytes := panes * cells * len(spec.estimators) * _CELL_BYTES) > MANY_BYTES:
        yield (
            f"the estimates of a day have {_bytes(nbytes)}, in {panes:,} tables of each"
            " estimator: take longer windows, fewer early estimates, estimators or values"
        )


def _bytes(number: int) -> str:
    """Write a number of bytes with a unit.

    >>> _bytes(1_600_000), _bytes(20_000_000_000_000)
    ('1.6 MB', '20,000 GB')
    """
    return f"{number / 1e9:,.0f} GB" if number >= 1e10 else f"{number / 1e6:,.1f} MB"
