"""Reports as packed columns, which flow between the stages instead of one element per report."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, cast

import numpy as np

from uldp.collector.hashing import hash_ids, spread
from uldp.collector.origins import Origins, joined, taken
from uldp.schemas.arrays import Mask, Payloads, ReportIds, Rows, SignalBits, Times, Words

#: Empty slices between the first and the last report get numbers too, up to this many slices and one for each report.
#: Devices choose the event times, and few reports of each of many collections are counted together, so both bound the
#: arrays that these numbers index.
_DENSE_SLICES = 1024
#: Number of ids to hash at once. The intermediate arrays for a block of this size stay in the processor's cache.
_BLOCK = 8192


@dataclass(frozen=True, slots=True, eq=False)
class ReportColumns:
    """Validated reports of one collection and version, as columns of equal length n."""

    collection: str
    version: int
    #: Shape (n, 2): the 16 bytes of each id as two little-endian words; shape (0, 2) if no step needs them.
    report_ids: ReportIds
    #: Shape (n,): start of the time slice that holds the report's event time, in milliseconds. A slice is the finest
    #: interval that windows are made of: the window's size, or the period of a sliding window.
    slices: Times
    payloads: Payloads  # shape (n,) uint32 for symbols, (n, width) uint8 for packed bits
    signals: SignalBits  # shape (n,): signals about each report's device; see ``uldp.collector.signals.signal_bits``
    origins: Origins | None = None  # the messages of the reports; None if no later step needs them

    def __len__(self) -> int:
        return len(self.slices)

    @property
    def nbytes(self) -> int:
        """Size of the columns in bytes."""
        own = sum(column.nbytes for column in self.columns)
        return own if self.origins is None else own + self.origins.nbytes

    def take(self, rows: Mask | Rows) -> "ReportColumns":
        """Return the reports that ``rows`` selects, by mask or by index."""
        at: Rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else cast(Rows, rows)
        # ndarray.take copies rows several times faster than an index in brackets does.
        return self._with([column.take(at, axis=0) for column in self.columns], taken(self.origins, at))

    @property
    def columns(self) -> tuple[ReportIds, Times, Payloads, SignalBits]:
        """The columns but for the origins."""
        return self.report_ids, self.slices, self.payloads, self.signals

    def _with(self, columns: Iterable[Any], origins: Origins | None) -> "ReportColumns":
        ids, slices, payloads, signals = columns
        return ReportColumns(self.collection, self.version, ids, slices, payloads, signals, origins)

    def without_ids(self) -> "ReportColumns":
        """Return the same reports without ids, which are a half of a symbol's bytes."""
        return replace(self, report_ids=self.report_ids[:0].copy(), origins=None)

    def cut(self, ends: Iterable[int]) -> Iterator["ReportColumns"]:
        """Cut into runs of consecutive reports, and yield the runs as views; the last of ``ends`` is n."""
        start = 0
        for end in ends:
            yield self._with([column[start:end] for column in self.columns], taken(self.origins, slice(start, end)))
            start = end


@dataclass(frozen=True, slots=True, eq=False)
class MixedColumns:
    """Reports of several collections and versions, which flow between the stages as one element."""

    parts: tuple[ReportColumns, ...]

    def __iter__(self) -> Iterator[ReportColumns]:
        return iter(self.parts)


def by_shard(parts: Iterable[ReportColumns], shards: int, key: Words) -> Iterator[tuple[int, MixedColumns]]:
    """Split reports by report id, so that all copies of a report reach one shard.

    Devices choose the ids. A keyed hash of the whole id chooses the shard, so that no device can fill one shard and
    leave the work of all to one worker. ``key`` is one of ``hash_ids``: the shards' state holds ids, so each worker,
    and each restart, needs the same.
    """
    if shards == 1:
        filled = tuple(part for part in parts if len(part))
        yield from [(0, MixedColumns(filled))] if filled else []
        return
    found: defaultdict[int, list[ReportColumns]] = defaultdict(list)
    for part in parts:
        numbers = np.empty(len(part), dtype=np.min_scalar_type(shards))
        for start in range(0, len(part), _BLOCK):
            low, high = part.report_ids[start : start + _BLOCK].T
            numbers[start : start + _BLOCK] = spread(hash_ids(key, low, high), shards)
        ends = np.bincount(numbers, minlength=shards).cumsum().tolist()
        # NumPy uses a radix sort for integers of 8 or 16 bits.
        for shard, run in enumerate(part.take(np.argsort(numbers, kind="stable")).cut(ends)):
            if len(run):
                found[shard].append(run)
    for shard, runs in found.items():
        yield shard, MixedColumns(tuple(runs))


def slices_of_many(slices: Times, reports: Sequence[int], slice_size: int) -> tuple[Rows, Times, Times]:
    """Number the time slices of one or more reports, of which each collection has so many, one behind the other.

    Return the number of the collection and the start of each slice that has reports, in this order; and the number of
    each report's slice, shape (n,).
    """
    first = int(slices.min())
    numbers = (slices - first) // slice_size
    width = int(numbers.max()) + 1
    if len(reports) > 1:
        numbers += np.repeat(width * np.arange(len(reports)), reports)
    if width * len(reports) <= max(_DENSE_SLICES, len(slices)):
        occupied = np.bincount(numbers, minlength=width * len(reports)) > 0
        found, groups = np.flatnonzero(occupied), (np.cumsum(occupied) - 1).take(numbers)
    else:
        found, groups = np.unique(numbers, return_inverse=True)
    of, within = np.divmod(found, width)
    return of, first + slice_size * within, groups


def grouped(numbers: Times) -> Iterator[tuple[int, Rows | None]]:
    """Group rows by a nonnegative number per row; yield each number and its rows in order, None for all rows."""
    largest = int(numbers.max(initial=0))
    if largest == numbers.min(initial=largest):
        if len(numbers):
            yield largest, None
        return
    # NumPy uses a radix sort for integers of 8 or 16 bits.
    numbers = numbers.astype(np.min_scalar_type(largest))
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    bounds = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(numbers)]
    for start, end in pairwise(bounds):
        yield int(numbers[start]), order[start:end]


def concatenate(parts: list[ReportColumns]) -> ReportColumns:
    """Join columns of one collection and version."""
    if len(parts) == 1:
        return parts[0]
    origins = None if parts[0].origins is None else joined(part.origins for part in parts if part.origins is not None)
    return parts[0]._with(map(np.concatenate, zip(*(part.columns for part in parts), strict=True)), origins)
