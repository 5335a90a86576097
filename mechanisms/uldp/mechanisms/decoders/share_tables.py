"""The tables of shares: what is published of an estimate over Z, and the intervals of the unbiased one beside it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from uldp.mechanisms.decoders.table_of import coverage_of, table_from, table_of
from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.tags.pum import Pum
from uldp.mechanisms.tags.pum_intervals import pum_intervals
from uldp.schemas.arrays import Floats
from uldp.schemas.table import Basis, Table, TableName


def share_tables(pum: Pum, r_hat: Floats, estimate: Estimate, *, simultaneous: bool = False) -> tuple[Table, ...]:
    """Return the shares of values by eq. (22) over the estimate of r; with tags, also what is behind them.

    The intervals lie around the unbiased estimate, for each estimator, and are cut to [0, 1].

    Args:
        r_hat: Shape (|Z|,): the published estimate of r.
        estimate: The unbiased estimate of r.
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
