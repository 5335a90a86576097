"""Reports as packed columns: what flows between the stages instead of one element per report."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np
import numpy.typing as npt

from mechanisms.mechanism import Mask, Payloads

Times = npt.NDArray[np.int64]
ReportIds = npt.NDArray[np.uint64]
SkewRanges = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.intp]

#: Slices between the first and the last that are numbered without looking which there are. Devices choose times, so
#: this bounds what the numbers are used for.
_DENSE_SLICES = 1024


@dataclass(frozen=True, slots=True, eq=False)
class ReportColumns:
    """Validated reports of one collection and version, as columns of equal length n.

    Attributes:
        collection: Name of the spec.
        version: Its version.
        report_ids: Shape (n, 2): the 16 bytes of each id as two little-endian words.
        slices: Shape (n,): start of the time slice that holds the report's event time, in milliseconds. A slice is
            the finest interval that windows are made of: the window's size, or the period of a sliding window.
        payloads: Shape (n,) uint32 for symbols, (n, width) uint8 for packed bits.
        skews: Shape (n,): the range of each report's clock skew; see ``transforms.signals``.
    """

    collection: str
    version: int
    report_ids: ReportIds
    slices: Times
    payloads: Payloads
    skews: SkewRanges

    def __len__(self) -> int:
        return len(self.slices)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the columns take."""
        return self.report_ids.nbytes + self.slices.nbytes + self.payloads.nbytes + self.skews.nbytes

    def take(self, rows: Mask | Rows) -> "ReportColumns":
        """Return the reports that ``rows`` selects, by mask or by index."""
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        # ndarray.take copies rows several times as fast as an index in brackets.
        return ReportColumns(
            self.collection,
            self.version,
            self.report_ids.take(rows, axis=0),
            self.slices.take(rows),
            self.payloads.take(rows, axis=0),
            self.skews.take(rows),
        )

    def by_shard(self, shards: int) -> Iterator[tuple[int, "ReportColumns"]]:
        """Split by report id, so that copies of a report meet in one shard."""
        if shards == 1:
            return iter([(0, self)] if len(self) else [])
        return self._split((self.report_ids[:, 0] % np.uint64(shards)).view(np.int64))

    def slice_groups(self, slice_size: int) -> tuple[Times, Times]:
        """Number the time slices of one or more reports.

        Returns:
            Starts of k slices, ascending, some of which may have no report; and the number of each report's slice.
        """
        first = int(self.slices.min())
        numbers = (self.slices - first) // slice_size
        k = int(numbers.max()) + 1
        if k <= _DENSE_SLICES:
            return first + slice_size * np.arange(k), numbers
        return np.unique(self.slices, return_inverse=True)

    def by_slice(self, slice_size: int) -> Iterator[tuple[int, "ReportColumns"]]:
        """Split by time slice, of ``slice_size`` milliseconds each; yields the start of a slice and its reports."""
        first = int(self.slices.min(initial=np.iinfo(np.int64).max))
        for index, columns in self._split((self.slices - first) // slice_size):
            yield first + index * slice_size, columns

    def _split(self, numbers: Times) -> Iterator[tuple[int, "ReportColumns"]]:
        """Split by a number for each report, of 0 or more."""
        largest = int(numbers.max(initial=0))
        if largest == numbers.min(initial=largest):
            if len(self):
                yield largest, self
            return
        # NumPy sorts integers of 8 or 16 bits by counting them.
        numbers = numbers.astype(np.min_scalar_type(largest))
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        bounds = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(self)]
        for start, end in pairwise(bounds):
            yield int(numbers[start]), self.take(order[start:end])


def concatenate(parts: list[ReportColumns]) -> ReportColumns:
    """Join columns of one collection and version."""
    if len(parts) == 1:
        return parts[0]
    return ReportColumns(
        parts[0].collection,
        parts[0].version,
        np.concatenate([part.report_ids for part in parts]),
        np.concatenate([part.slices for part in parts]),
        cast(Payloads, np.concatenate([part.payloads for part in parts])),
        np.concatenate([part.skews for part in parts]),
    )
