"""Tables of an estimate: what is published, with the errors and intervals of the unbiased estimate beside it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.laws.interval import Ends
from uldp.mechanisms.tags.pum import Pum
from uldp.mechanisms.tags.pum_intervals import pum_intervals
from uldp.schemas.arrays import Floats
from uldp.schemas.table import INTERVAL_LEVEL, Basis, Table, TableName

#: The probability that any of the tested strings or keys is found which nobody holds.
FALSELY_FOUND = 0.05


def table_of(
    name: TableName,
    values: Floats,
    estimate: Estimate,
    *,
    w: Floats | None = None,
    simultaneous: bool = False,
    bounds: tuple[float, float] = (0.0, 1.0),
    **fields: Any,
) -> Table:
    """Return a table of an unbiased estimate, or of sums of it.

    Args:
        values: Shape (m,) or (j,): what is published; of rows of several windows, rows.
        w: Shape (m, j): the weights of the sums; None for the values of the estimate.
        bounds: The range of the quantity, to which intervals are cut.
        fields: Further fields of ``Table``; n is that of the estimate unless given.
    """
    unbiased, cumulants = (
        (estimate.values, estimate.cumulants) if w is None else (estimate.values @ w, estimate.sums(w))
    )
    ends = estimate.ends(unbiased, cumulants, coverage_of(values.shape[-1], simultaneous), w)
    return table_from(
        name,
        values,
        np.sqrt(cumulants.variance),
        ends,
        Basis.EXACT if cumulants.exact.all() else Basis.SCORE,
        unbiased=unbiased,
        simultaneous=simultaneous,
        bounds=bounds,
        **{"n": int(np.max(estimate.n))} | fields,
    )


def table_from(
    name: TableName,
    values: Floats,
    stderr: Floats,
    ends: Ends,
    basis: Basis,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    **fields: Any,
) -> Table:
    """Return a table whose intervals are cut to a range, and hold what is published.

    The published value and the unbiased one are two estimates, so the former may be outside of the interval around the
    latter. A wider interval covers no less.
    """
    low, high = (end.clip(*bounds) for end in ends)
    low, high = np.minimum(low, values), np.maximum(high, values)
    return Table(name, values, stderr, low=low, high=high, basis=basis, **{"shape": values.shape} | fields)


def coverage_of(intervals: float, simultaneous: bool) -> float:
    """Return the probability with which each of some intervals of a table is to cover."""
    return 1 - (1 - INTERVAL_LEVEL) / intervals if simultaneous else INTERVAL_LEVEL


def share_tables(pum: Pum, r_hat: Floats, estimate: Estimate, *, simultaneous: bool = False) -> tuple[Table, ...]:
    """Return the shares of values by eq. (22) over the published r-hat, (|Z|,); with tags, also what is behind them.

    The intervals lie around the unbiased estimate, for each estimator, and are cut to [0, 1].
    """
    if not pum.tags:
        return (table_of(TableName.SHARE, r_hat, estimate, simultaneous=simultaneous, whole=True),)
    table = partial(table_of, simultaneous=simultaneous)
    ends = pum_intervals(pum, estimate, coverage_of(pum.size, simultaneous))
    of_shares = Basis.ANY_BACKGROUND if np.isnan(pum.strength).all() else Basis.SCORE
    visible, hidden = estimate.at(slice(0, pum.size)), estimate.at(slice(pum.size, None))
    n = int(estimate.n[0])
    made = partial(table_from, n=n, simultaneous=simultaneous)
    unbiased = pum.distribution(estimate.values)
    return (
        made(
            TableName.SHARE,
            pum.distribution(r_hat),
            pum.stderr(estimate),
            ends.share,
            of_shares,
            unbiased=unbiased,
            whole=True,
        ),
        table(TableName.HIDDEN, r_hat[pum.size :], hidden, keys=pum.tags),
        Table(TableName.BOUND, np.array([pum.bound(r_hat)]), np.zeros(1), n, shape=(1,)),
        table(TableName.VISIBLE, pum.visible(r_hat), visible),
        made(TableName.BAND, pum.most(r_hat), pum.most_stderr(estimate), ends.band, Basis.ANY_BACKGROUND),
    )


def tables_by_rows(shares: Floats, estimate: Estimate, n: Sequence[int], *, simultaneous: bool) -> Iterator[Table]:
    """Yield the table of shares of each row, and of an estimate of rows of several windows, without tags."""
    of_all = table_of(TableName.SHARE, shares, estimate, simultaneous=simultaneous, whole=True)
    rows = zip(n, *of_all.arrays.values(), strict=True)
    for reports, *row in rows:
        yield replace(of_all, n=reports, shape=row[0].shape, **dict(zip(of_all.arrays, row, strict=True)))
