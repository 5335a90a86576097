"""The table of how many items, or strings, users report in the mean."""

from statistics import NormalDist

import numpy as np

from uldp.schemas.table import INTERVAL_LEVEL, Basis, Table, TableName


def mean_size_table(mean: float, variance: float, n: int, held: int) -> Table:
    """Return the table of the mean number of items that users report, with a normal interval cut to [0, l]."""
    half = NormalDist().inv_cdf((1 + INTERVAL_LEVEL) / 2) * variance**0.5
    values = np.array([mean])
    return Table(
        TableName.MEAN_SIZE,
        np.clip(values, 0.0, held),
        np.array([variance**0.5]),
        n,
        shape=(1,),
        unbiased=values,
        low=np.clip(values - half, 0.0, held),
        high=np.clip(values + half, 0.0, held),
        basis=Basis.NORMAL,
    )
