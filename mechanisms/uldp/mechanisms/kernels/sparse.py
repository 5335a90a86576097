"""A sparse matrix by its entries. SciPy's take longer to import than a job takes to estimate a window."""

from dataclasses import dataclass

import numpy as np

from uldp.schemas.arrays import Floats, Symbols


@dataclass(frozen=True, eq=False)
class Sparse:
    """A matrix that has entries in each of its rows and of its columns: a row, a column and a number for each."""

    rows: Symbols
    columns: Symbols
    entries: Floats

    def times(self, x: Floats) -> Floats:
        """Return the product with x, of shape (columns, j)."""
        return _sums(self.rows, self.entries[:, np.newaxis] * x[self.columns])

    def transposed(self, y: Floats) -> Floats:
        """Return the product of the transposed matrix with y, of shape (rows, j)."""
        return _sums(self.columns, self.entries[:, np.newaxis] * y[self.rows])


def _sums(of: Symbols, numbers: Floats) -> Floats:
    """Sum the numbers, shape (entries, j), of each row, or column, that entries are of."""
    columns = numbers.shape[1]
    places = of[:, np.newaxis] * columns + np.arange(columns)
    return np.bincount(places.ravel(), numbers.ravel()).astype(np.float64, copy=False).reshape(-1, columns)
