"""Support counts, dense or sparse: the memory of a window depends on its reports, not on the size of a large domain.

Dense counts hold an int64 for each symbol of Z; sparse counts hold only the reported symbols. Sums of both kinds are
exact, in any order.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uldp.schemas.arrays import Counts, Symbols

#: Sparse counts store a symbol and a number for each reported symbol. If more than this share of the domain was
#: reported, dense counts are smaller and faster.
_SPARSE_SHARE = 1 / 4


@dataclass(frozen=True, slots=True, eq=False)
class SparseCounts:
    """The support counts of a domain with few reported symbols.

    Attributes:
        size: |Z|.
        symbols: Shape (k,): the reported symbols, sorted.
        counts: Shape (k,): the number of reports of each of these symbols.
    """

    size: int
    symbols: Symbols
    counts: Counts

    def dense(self) -> Counts:
        """Return a count for each symbol of Z."""
        counts = np.zeros(self.size, dtype=np.int64)
        counts[self.symbols] = self.counts
        return counts


AnyCounts = Counts | SparseCounts


def as_dense(counts: AnyCounts) -> Counts:
    """Return a count for each symbol of Z."""
    return counts.dense() if isinstance(counts, SparseCounts) else counts


def add_counts(one: AnyCounts, other: AnyCounts) -> AnyCounts:
    """Add counts over the same Z; the sum is sparse if both are sparse and few symbols were reported."""
    if isinstance(other, SparseCounts):
        one, other = other, one
    if not isinstance(one, SparseCounts):
        return one + as_dense(other)
    if not isinstance(other, SparseCounts):
        total = other.copy()
        total[one.symbols] += one.counts
        return total
    symbols, at = np.unique(np.concatenate([one.symbols, other.symbols]), return_inverse=True)
    counts = np.zeros(len(symbols), dtype=np.int64)
    np.add.at(counts, at, np.concatenate([one.counts, other.counts]))
    return _smallest(SparseCounts(one.size, symbols, counts))


def count_symbols(symbols: npt.NDArray[np.integer], groups: Symbols, k: int, size: int) -> list[AnyCounts]:
    """Count the symbols of each of k groups, all at once.

    Args:
        symbols: Shape (n,): each below ``size``.
        groups: Shape (n,): the group of each symbol, below k.
        k: The number of groups.
        size: |Z|.

    Returns:
        The counts of each group. Memory is O(n + |Z|), independent of the number of groups.
    """
    cells = symbols + groups * size
    if k * size <= max(4 * len(cells), size):
        return list(np.bincount(cells, minlength=k * size).astype(np.int64, copy=False).reshape(k, size))
    found, counts = np.unique(cells, return_counts=True)
    ends = np.searchsorted(found, np.arange(1, k) * size)
    return [
        _smallest(SparseCounts(size, cells_of_group % size, of_group.astype(np.int64)))
        for cells_of_group, of_group in zip(np.split(found, ends), np.split(counts, ends), strict=True)
    ]


def _smallest(counts: SparseCounts) -> AnyCounts:
    return counts if len(counts.symbols) < _SPARSE_SHARE * counts.size else counts.dense()
