"""Tables of windows together whose devices keep responses: with the errors of these, and what is found despite them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from uldp.mechanisms.strings.candidate_decoder import FALSELY_FOUND
from uldp.schemas.arrays import Floats, Mask
from uldp.schemas.table import NUMBERS, Table, TableName


def all_widened(
    tables: Sequence[Table], wider: Callable[[tuple[str, ...]], float], tested: Callable[[Table], int]
) -> Iterator[Table]:
    """Yield tables whose errors are larger than those of as many different devices.

    A p-value is that of an estimate of z standard errors. As these are w times as large, it becomes that of z/w. So
    fewer names are found, and a mean of the numbers that users hold with one is left out if it is not found any more.

    Args:
        tables: The tables.
        wider: How many times as large the errors of a variable are, by ``Table.of``.
        tested: How many names were tested of a table of p-values, as ``Decoder.tested`` has it.
    """
    p_values = {each.of: each for each in tables if each.name is TableName.P_VALUE}
    chances = {of: _chance(table.values, wider(of)) for of, table in p_values.items()}
    found = {of: chances[of] <= FALSELY_FOUND / max(tested(table), 1) for of, table in p_values.items()}
    before = {each.of: each.values > 0 for each in tables if each.name is TableName.FOUND}
    for table in tables:
        if table.name is TableName.P_VALUE:
            yield replace(table, values=chances[table.of])
        elif table.name is TableName.FOUND:
            yield replace(table, values=found[table.of].astype(np.float64))
        elif table.name is TableName.MEAN and table.of in found:
            still = found[table.of][before[table.of]]
            if still.any():
                yield _means(widened(table, wider(table.of)), still)
        else:
            yield widened(table, wider(table.of))


def widened(table: Table, wider: float) -> Table:
    """Return a table whose errors are so many times as large; its intervals hold those of before."""
    if wider == 1 or table.low is None or table.high is None:
        return table
    middle = table.values if table.unbiased is None else table.unbiased
    low, high = (middle + wider * (end - middle) for end in (table.low, table.high))
    if table.name not in NUMBERS:
        low, high = low.clip(0.0, 1.0), high.clip(0.0, 1.0)
    low, high = np.minimum(low, table.low), np.maximum(high, table.high)
    return replace(table, stderr=wider * table.stderr, low=low, high=high)


def _chance(p_values: Floats, wider: float) -> Floats:
    """Return the p-values of normal estimates of which the standard errors are so many times as large."""
    from scipy import special  # devices need no SciPy

    return np.asarray(special.ndtr(special.ndtri(p_values) / wider), dtype=np.float64)


def _means(table: Table, which: Mask) -> Table:
    """Return the means for which ``which`` is true."""
    assert table.keys is not None
    assert table.low is not None
    assert table.high is not None
    keys = tuple(key for key, there in zip(table.keys, which.tolist(), strict=True) if there)
    of_entries = replace(table, values=table.values[which], stderr=table.stderr[which], shape=(len(keys),), keys=keys)
    return replace(of_entries, low=table.low[which], high=table.high[which])
