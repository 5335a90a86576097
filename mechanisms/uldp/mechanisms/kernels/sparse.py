"""A sparse matrix by its entries. SciPy's take longer to import than a job takes to estimate a window."""

from dataclasses import dataclass
from functools import cached_property

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
        return _product(self._by_row, self.rows, self.columns, self.entries, x)

    def transposed(self, y: Floats) -> Floats:
        """Return the product of the transposed matrix with y, of shape (rows, j)."""
        return _product(self._by_column, self.columns, self.rows, self.entries, y)

    @cached_property
    def _by_row(self) -> tuple[Symbols, Symbols]:
        return _order(self.rows)

    @cached_property
    def _by_column(self) -> tuple[Symbols, Symbols]:
        return _order(self.columns)


def _order(of: Symbols) -> tuple[Symbols, Symbols]:
    """Return the entries in the order of their rows, and the place of the first of each row."""
    order = np.argsort(of, kind="stable")
    return order, np.flatnonzero(np.diff(of[order], prepend=-1))


def _product(ordered: tuple[Symbols, Symbols], rows: Symbols, columns: Symbols, entries: Floats, x: Floats) -> Floats:
    if x.shape[1] == 1:
        return np.asarray(np.bincount(rows, entries * x[columns, 0])[:, np.newaxis], dtype=np.float64)
    order, starts = ordered
    return np.add.reduceat(entries[order, np.newaxis] * x[columns[order]], starts, axis=0)
