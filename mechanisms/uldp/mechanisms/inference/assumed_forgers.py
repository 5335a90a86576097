"""Intervals that hold although some of the reports are forged.

Let a share phi of n reports be forged. The unbiased estimate of a share r has the expectation (1 - phi) r + phi c,
where c is the mean of what the forged reports count as. No report that a job does not reject counts as more than W from
any possible r (``Decoder.heaviest``), so forgers move the expectation by phi |c - r| <= phi W. An interval that
covers with some probability still does if both of its ends are moved outwards by phi W.

Forgers choose what they report about. If a table is about n_a of the n reports, as that of one attribute of a record,
all forged ones may be among these, and phi n / n_a of them are forged.

A string or key is found if its share is above 0 by a test. With forgers it is found if the lower end that allows for
them is above 0, too.

Bins and quantiles of a number are no linear estimates. Their ends are exact bounds of the honest reports' distribution;
see ``uldp.mechanisms.families.block.band``.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from uldp.mechanisms.protocol.decoder import Decoder
from uldp.schemas.arrays import Counts
from uldp.schemas.table import NUMBERS, Table, TableName


def with_forgers(table: Table, decoder: Decoder, forgers: float, cells: Counts, n: int) -> Table:
    """Return a table of a decoder with the intervals that allow for forgers beside its own; as it is if none are known.

    ``forgers`` is the share of all n reports that may be forged, and ``cells`` are the whole statistic.
    """
    ends = decoder.forged_ends(table, cells, forgers * n)
    if ends is None or table.low is None or table.high is None:
        return table
    low, high = ends
    if table.name not in NUMBERS:
        low, high = low.clip(0.0, 1.0), high.clip(0.0, 1.0)
    # The table's own ends hold what is published, which may be outside of the range.
    return replace(table, low_forged=np.minimum(low, table.low), high_forged=np.maximum(high, table.high))


def all_with_forgers(
    tables: Iterable[Table], decoder: Decoder, forgers: float, cells: Counts, n: int
) -> tuple[Table, ...]:
    """Return ``with_forgers`` of all tables of a decoder; what forgers alone may bring about is not found."""
    moved = tuple(with_forgers(table, decoder, forgers, cells, n) for table in tables)
    lows = {table.of: table.low_forged for table in moved if table.name is TableName.SHARE}
    return tuple(
        replace(table, values=np.where(low > 0, table.values, 0.0))
        if table.name is TableName.FOUND and (low := lows.get(table.of)) is not None
        else table
        for table in moved
    )
