"""Support counts, sparse while they are few: a window of a large domain costs what it has received, not what it might.

Counts are dense, an int64 for each symbol of Z, or sparse, the symbols that were reported at all. Sums of either kind
are exact, in any order.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uldp.schemas.arrays import Counts, Symbols

#: A sparse count takes a symbol and a number. Beyond this share of the domain, dense counts are smaller and faster.
_SPARSE_SHARE = 1 / 4


@dataclass(frozen=True, slots=True, eq=False)
class SparseCounts:
    """The support counts of a domain of which few symbols were reported.

    Attributes:
        size: |Z|.
        symbols: Shape (k,), sorted: those that were reported.
        counts: Shape (k,): how often each was.
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
    """Add counts over the same Z. The sum is sparse as long as both are, and few symbols were reported."""
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
        groups: Shape (n,): the group of each, below k.
        k: How many groups there are.
        size: |Z|.

    Returns:
        The counts of each group. Memory is O(n), however many groups and symbols there are.
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
