"""The tables of shares: what is published of an estimate over Z, and the intervals of the unbiased one beside it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from uldp.mechanisms.protocol.linear import Linear
from uldp.mechanisms.tags.pum import Pum
from uldp.mechanisms.tags.pum_intervals import Ends, pum_intervals
from uldp.schemas.arrays import Floats
from uldp.schemas.table import INTERVAL_LEVEL, Basis, Table, TableName


def share_tables(
    pum: Pum, r_hat: Floats, linear: Linear, *, basis: Basis, simultaneous: bool = False
) -> tuple[Table, ...]:
    """Return the shares of values by eq. (22) over the estimate of r; with tags, also what is behind them.

    The intervals lie around the unbiased estimate, for each estimator, and are cut to [0, 1].

    Args:
        pum: The values and tags behind the symbols.
        r_hat: Shape (|Z|,): the published estimate of r.
        linear: The unbiased estimate of r.
        basis: The method behind the intervals of ``linear``.
        simultaneous: Whether all intervals of a table are to cover the truth at once (Bonferroni), or each alone.
    """

    def coverage_of_each(intervals: int) -> float:
        return 1 - (1 - INTERVAL_LEVEL) / intervals if simultaneous else INTERVAL_LEVEL

    n = int(linear.n[0])
    if not pum.tags:
        return (table_without_tags(r_hat, linear, n, basis=basis, simultaneous=simultaneous),)
    ends = pum_intervals(pum, linear, coverage_of_each(pum.size))
    table = partial(table_of_shares, n=n, simultaneous=simultaneous)
    shares, stderr = pum.distribution(r_hat), pum.stderr(linear)
    unbiased = pum.distribution(linear.values)
    of_shares = Basis.ANY_BACKGROUND if np.isnan(pum.strength).all() else Basis.NORMAL
    errors, most = pum.visible(np.sqrt(linear.variance)), pum.most_stderr(linear)
    masses, of_masses = pum.tag_masses(r_hat, linear)
    low, high = linear.interval(coverage_of_each(len(pum.tags)))
    hidden = low[pum.size :], high[pum.size :]
    return (
        table(TableName.SHARE, shares, stderr, ends.share, of_shares, unbiased=unbiased, whole=True),
        table(TableName.HIDDEN, masses, of_masses, hidden, basis, unbiased=linear.values[pum.size :], keys=pum.tags),
        Table(TableName.BOUND, np.array([pum.bound(r_hat)]), np.zeros(1), n, shape=(1,)),
        table(TableName.VISIBLE, pum.visible(r_hat), errors, ends.visible, basis, unbiased=pum.visible(linear.values)),
        table(TableName.BAND, pum.most(r_hat), most, ends.band, Basis.ANY_BACKGROUND),
    )


def table_without_tags(shares: Floats, linear: Linear, n: int, *, basis: Basis, simultaneous: bool = False) -> Table:
    """Return the table of shares where no value is hidden; see ``share_tables``."""
    coverage = 1 - (1 - INTERVAL_LEVEL) / shares.shape[-1] if simultaneous else INTERVAL_LEVEL
    ends, stderr = linear.interval(coverage), np.sqrt(np.maximum(linear.variance, 0.0))
    return table_of_shares(
        TableName.SHARE,
        shares,
        stderr,
        ends,
        basis,
        n=n,
        simultaneous=simultaneous,
        unbiased=linear.values,
        whole=True,
    )


def table_of_shares(
    name: TableName,
    values: Floats,
    stderr: Floats,
    ends: Ends,
    basis: Basis,
    *,
    n: int,
    simultaneous: bool,
    unbiased: Floats | None = None,
    keys: tuple[str, ...] | None = None,
    whole: bool = False,
) -> Table:
    """Return a table of one dimension, whose intervals are cut to [0, 1]."""
    low, high = (end.clip(0.0, 1.0) for end in ends)
    return Table(
        name,
        values,
        stderr,
        n,
        shape=values.shape,
        keys=keys,
        unbiased=unbiased,
        low=low,
        high=high,
        whole=whole,
        basis=basis,
        simultaneous=simultaneous,
    )


def tables_by_rows(
    shares: Floats, linear: Linear, n: Sequence[int], *, basis: Basis, simultaneous: bool = False
) -> Iterator[Table]:
    """Yield ``table_without_tags`` of each row of shares, and of an estimate of rows of several windows."""
    of_all = table_without_tags(shares, linear, max(n), basis=basis, simultaneous=simultaneous)
    rows = zip(n, *of_all.arrays.values(), strict=True)
    for reports, *row in rows:
        yield replace(of_all, n=reports, shape=row[0].shape, **dict(zip(of_all.arrays, row, strict=True)))
