"""Reports as packed columns: what flows between the stages instead of one element per report."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from mechanisms.mechanism import Mask, Payloads
from schemas.records import Accounting, Counts

Times = npt.NDArray[np.int64]
ReportIds = npt.NDArray[np.uint64]


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
    """

    collection: str
    version: int
    report_ids: ReportIds
    slices: Times
    payloads: Payloads

    def __len__(self) -> int:
        return len(self.slices)

    def take(self, rows: Mask | npt.NDArray[np.intp]) -> "ReportColumns":
        """Return the reports that ``rows`` selects, by mask or by index."""
        return ReportColumns(
            self.collection, self.version, self.report_ids[rows], self.slices[rows], self.payloads[rows]
        )

    def by_shard(self, shards: int) -> Iterable[tuple[int, "ReportColumns"]]:
        """Split by report id, so that copies of a report meet in one shard."""
        shard = self.report_ids[:, 0] % np.uint64(shards)
        order = np.argsort(shard, kind="stable")
        ends = np.cumsum(np.bincount(shard.astype(np.intp), minlength=shards))
        for index, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if start < end:
                yield index, self.take(order[start:end])


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
    )


@dataclass(frozen=True, slots=True, eq=False)
class PartialCounts:
    """A part of the sufficient statistic of one window: support counts over Z and where the reports went.

    Sums are a commutative monoid. ``counts`` is None where no report was counted, so that accounting alone is small.
    """

    counts: Counts | None
    accounting: Accounting

    def __add__(self, other: "PartialCounts") -> "PartialCounts":
        if self.counts is None or other.counts is None:
            counts = other.counts if self.counts is None else self.counts
        else:
            counts = self.counts + other.counts
        return PartialCounts(counts, self.accounting + other.accounting)
