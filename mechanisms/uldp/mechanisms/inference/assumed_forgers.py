"""Intervals that hold although some of the reports are forged.

Let a share phi of n reports be forged. The unbiased estimate of a share r has the expectation (1 - phi) r + phi c,
where c is the mean of what the forged reports count as. No report that a job does not reject counts as more than W from
any possible r (``Decoder.heaviest``), so forgers move the expectation by phi |c - r| <= phi W. An interval that
covers with some probability still does if both of its ends are moved outwards by phi W.

Forgers choose what they report about. If a table is about n_a of the n reports, as that of one attribute of a record,
all forged ones may be among these, and phi n / n_a of them are forged.
"""

from dataclasses import replace

from uldp.mechanisms.protocol.decoder import Decoder
from uldp.schemas.table import Table, TableName


def with_forgers(table: Table, decoder: Decoder, forgers: float, n: int) -> Table:
    """Return a table with the intervals that allow for forgers beside its own; as it is if their weight is not known.

    Args:
        table: A table of the decoder.
        decoder: The decoder of the whole statistic.
        forgers: The share of the reports that may be forged.
        n: The number of all reports.
    """
    weight = decoder.heaviest(table)
    if weight is None or table.low is None or table.high is None:
        return table
    moved = min(forgers * n / table.n, 1.0) * weight
    low, high = table.low - moved, table.high + moved
    if table.name is not TableName.MEAN:
        low, high = low.clip(0.0, 1.0), high.clip(0.0, 1.0)
    return replace(table, low_forged=low, high_forged=high)
