"""The cells of a statistic, dense or sparse: the memory of a window depends on its reports, not on a large domain.

Dense cells are an int64 array; sparse cells hold only the cells that a report has moved. Sums of both kinds are exact,
in any order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uldp.schemas.arrays import Counts, Symbols

#: Sparse cells store an index and a value for each cell. If more than this share of the cells differs from 0, dense
#: cells are smaller and faster.
_SPARSE_SHARE = 1 / 4


@dataclass(frozen=True, slots=True, eq=False)
class SparseCells:
    """A statistic in which few of ``size`` cells differ from 0: the sorted indices of some, and their values."""

    size: int
    indices: Symbols
    values: Counts

    def dense(self) -> Counts:
        """Return all cells."""
        cells = np.zeros(self.size, dtype=np.int64)
        cells[self.indices] = self.values
        return cells


Cells = Counts | SparseCells


def as_dense(cells: Cells) -> Counts:
    """Return all cells."""
    return cells.dense() if isinstance(cells, SparseCells) else cells


def add_cells(one: Cells, other: Cells) -> Cells:
    """Add cells of the same number; the sum is sparse if both are sparse and few cells differ from 0."""
    if isinstance(other, SparseCells):
        one, other = other, one
    if not isinstance(one, SparseCells):
        return one + as_dense(other)
    if not isinstance(other, SparseCells):
        total = other.copy()
        total[one.indices] += one.values
        return total
    indices = np.concatenate([one.indices, other.indices])
    return _added(one.size, indices, np.concatenate([one.values, other.values]))


def _added(size: int, indices: Symbols, values: Counts) -> Cells:
    """Return sparse cells of sorted runs of indices, whose values are added."""
    order = np.argsort(indices, kind="stable")  # which merges sorted runs
    indices = indices[order]
    first = np.flatnonzero(np.diff(indices, prepend=-1))
    return smallest(SparseCells(size, indices[first], np.add.reduceat(values[order], first)))


def count_symbols(symbols: npt.NDArray[np.integer], groups: Symbols, k: int, size: int) -> list[Cells]:
    """Return ``size`` cells of each of k groups: how often each symbol below ``size`` is in it.

    Symbols, and the group of each, have shape (n,). Memory is O(n + size), independent of the number of groups.
    """
    cells = symbols + groups * size
    if k * size <= max(4 * len(cells), size):
        return list(np.bincount(cells, minlength=k * size).astype(np.int64, copy=False).reshape(k, size))
    found, counts = np.unique(cells, return_counts=True)
    return unstack_cells(SparseCells(k * size, found, counts.astype(np.int64)), k)


def stack_cells(rows: Sequence[Cells]) -> Cells:
    """Join one or more rows of cells, one behind the other; sparse if few cells differ from 0."""
    if len(rows) == 1:
        return rows[0]
    dense = [row for row in rows if not isinstance(row, SparseCells)]
    if len(dense) == len(rows):
        return np.concatenate(dense)
    sparse = [row if isinstance(row, SparseCells) else as_sparse(row) for row in rows]
    ends = np.cumsum([row.size for row in sparse])
    indices = np.concatenate([row.indices for row in sparse])
    indices += np.repeat(np.append(0, ends[:-1]), [len(row.indices) for row in sparse])
    return smallest(SparseCells(int(ends[-1]), indices, np.concatenate([row.values for row in sparse])))


def unstack_cells(cells: Cells, k: int) -> list[Cells]:
    """Return the k rows of one size of which ``stack_cells`` joined these cells, dense ones as views."""
    return [take_rows(cells, row, row + 1, k) for row in range(k)]


def take_rows(cells: Cells, first: int, end: int, k: int) -> Cells:
    """Return the rows from ``first`` until ``end`` of the k rows of ``stack_cells``; dense ones are a view."""
    if end - first == k:
        return cells
    if not isinstance(cells, SparseCells):
        return cells.reshape(k, -1)[first:end].reshape(-1)
    size = cells.size // k
    begin, until = np.searchsorted(cells.indices, (first * size, end * size)).tolist()
    rows = SparseCells((end - first) * size, cells.indices[begin:until] - first * size, cells.values[begin:until])
    return smallest(rows)


def sum_rows(cells: Cells, k: int) -> Cells:
    """Add the k rows of ``stack_cells``."""
    if k == 1:
        return cells
    if not isinstance(cells, SparseCells):
        return np.asarray(cells.reshape(k, -1).sum(axis=0))
    size = cells.size // k
    return _added(size, cells.indices % size, cells.values)


def spread_rows(cells: Cells, at: Symbols, k: int) -> Cells:
    """Put rows of ``stack_cells`` among k rows, at these ascending numbers, shape (rows,); those that are new are 0."""
    size = (cells.size if isinstance(cells, SparseCells) else len(cells)) // len(at)
    if isinstance(cells, SparseCells):
        rows, symbols = np.divmod(cells.indices, size)
        return smallest(SparseCells(k * size, at[rows] * size + symbols, cells.values))
    spread = np.zeros((k, size), dtype=np.int64)
    spread[at] = cells.reshape(-1, size)
    return spread.reshape(-1)


def as_sparse(cells: Counts) -> SparseCells:
    """Give only the cells that differ from 0."""
    indices = np.flatnonzero(cells)
    return SparseCells(len(cells), indices, cells[indices])


def smallest(cells: SparseCells) -> Cells:
    """Return cells that take little room: dense ones, unless few differ from 0."""
    return cells if len(cells.indices) < _SPARSE_SHARE * cells.size else cells.dense()
