"""The ends of sliding windows: the difference of two windows is about the beginning of one and the end of the other.

Two windows that overlap share all but the first slices of the earlier one and the last slices of the later one. So a
window is published if its first and its last slice have enough reports each. If slices have too few, coarser ones may
do: several slices each, of which the window begins with one, and which are half of the window at most. The lengths of
coarser slices divide one another. So of two windows, the one with the finer slices has its first or its last one, with
enough reports, outside of the other.

Three windows without late reports, each added or subtracted, sum up to no fewer. If the first and the last of them
overlap, all three share the first slice of the last one or the last slice of the first, and an odd number of signs has
no sum of 0. If not, the one between is without the first slice of the first or without the last slice of the last, for
both are half at most.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import Self

import numpy as np

from uldp.collector.collections import ServedCollection
from uldp.collector.partial import Partial
from uldp.collector.published import reports_of
from uldp.mechanisms.kernels.designs import prime_factors
from uldp.mechanisms.protocol.decoder import Decoder
from uldp.schemas.arrays import Counts


@lru_cache
def coarser(slices: int) -> tuple[int, ...]:
    """Return the lengths of coarser and coarser slices of a window, in slices; a window has two or more of the last.

    Each is a multiple of the one before, by the large prime factors first, so that most steps are small. The window
    itself is none of them: two such windows, and one that overlaps both, would differ by what is outside of it.

    >>> coarser(24), coarser(6), coarser(1)
    ((1, 3, 6, 12), (1, 3), (1,))
    """
    return tuple(accumulate([1, *reversed(prime_factors(slices)[1:])], int.__mul__))


class SliceReports:
    """The reports of each table in the slices of one collection, or in their parts, by their starts.

    A window has ``size`` milliseconds and a slice ``period``, which begins ``offset`` later than a multiple of that.
    """

    def __init__(
        self, slices: Mapping[int, Partial], decoder: Decoder, size: int, period: int, offset: int = 0
    ) -> None:
        self._offset = offset
        self._size, self._lengths = size, [period * slices for slices in coarser(size // period)]
        counted = {start: each for start in sorted(slices) if (each := reports_of(decoder, slices[start]))}
        self._starts = list(counted)
        none = (0,) * len(next(iter(counted.values()), ()))
        self._until = np.cumsum([none, *counted.values()], axis=0, dtype=np.int64)

    @classmethod
    def of(cls, served: ServedCollection, slices: Mapping[int, Partial]) -> Self:
        """Take the slices of a collection; none if its windows do not slide, or may differ by a single report."""
        wanted = slices if served.spec.window.period is not None and served.spec.limits.min_reports > 1 else {}
        return cls(wanted, served.protocol.decoder, served.window_size, served.slice_size, served.offset)

    def ended(self, start: int, total: Partial) -> Partial:
        """Return the sum of the window from ``start`` on, whose slot is 0, with the reports at its ends, if any."""
        if not self._starts:
            return total
        return replace(total, ends={0: self.at_ends(start)})

    def at_ends(self, start: int) -> Counts:
        """Return the reports at the ends of the window from ``start`` on, shape (2 levels tables,).

        They are, for each length of slices of which one begins with the window, those of each table in the first such
        slice of the window, and then in the last.
        """
        end, reports = start + self._size, list[int]()
        for length in self._lengths:
            if (start - self._offset) % length:
                break  # so it is with the other lengths, which are multiples of this one
            reports += self._between(start, start + length)
            reports += self._between(end - length, end)
        return np.array(reports, dtype=np.int64)

    def _between(self, start: int, end: int) -> list[int]:
        first = bisect_left(self._starts, start)
        last = bisect_left(self._starts, end, first)
        reports: list[int] = (self._until[last] - self._until[first]).tolist()
        return reports
