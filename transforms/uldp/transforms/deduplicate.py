"""Count a report once: drop copies by (collection, report id), over the time in which a copy could still be counted.

State is packed: each shard of ids has a bag of byte strings, and each string is an expiry and the ids that expire then.
A worker keeps the ids of the shards that it serves in memory. Every write stores a new random token in the state; the
worker compares tokens to see whether its memory still equals the state.
"""

import secrets
import struct
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.coders import BytesCoder
from apache_beam.pvalue import PCollection
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import (
    BagStateSpec,
    ReadModifyWriteStateSpec,
    TimerSpec,
    on_timer,
)

from uldp.collector.collections import ServedCollection
from uldp.collector.columns import ReportColumns, slice_groups
from uldp.collector.partial import PartialStatistic
from uldp.collector.seen import SeenIds
from uldp.collector.shared_specs import SharedSpecs
from uldp.collector.signals import PartialSignals, skew_counts
from uldp.schemas.arrays import ReportIds
from uldp.schemas.collection import CollectionSpec
from uldp.schemas.pane import Accounting
from uldp.transforms.count import KeyedStatistic
from uldp.transforms.internals import Timestamp, no_annotations
from uldp.transforms.kept import Kept
from uldp.transforms.metrics import counter
from uldp.transforms.spill import FileRange, GroupColumns, read_columns
from uldp.transforms.windows import at_time


def pack_ids(expiry: int, ids: ReportIds) -> bytes:
    """Write ids that all expire at ``expiry`` (milliseconds) as one state entry."""
    return struct.pack("<q", expiry) + np.ascontiguousarray(ids).tobytes()


def unpack_ids(entry: bytes) -> tuple[int, ReportIds]:
    """Read back what ``pack_ids`` wrote."""
    return struct.unpack_from("<q", entry)[0], np.frombuffer(entry, np.uint64, -1, 8).reshape(-1, 2)


def unexpired(entries: Iterable[bytes], now: int) -> dict[int, ReportIds]:
    """Join the entries that expire after ``now``, by expiry."""
    kept: dict[int, list[ReportIds]] = {}
    for entry in entries:
        expiry, ids = unpack_ids(entry)
        if expiry > now:
            kept.setdefault(expiry, []).append(ids)
    return {expiry: np.concatenate(parts) for expiry, parts in sorted(kept.items())}


class DeduplicatedReports(NamedTuple):
    """The outputs of ``DeduplicateReports``.

    Attributes:
        columns: Reports without copies.
        accounting: The accounting of dropped copies, for each collection and version, at the time of their slice.
    """

    columns: PCollection[ReportColumns]
    accounting: PCollection[KeyedStatistic]


@dataclass
class DeduplicateReports(beam.PTransform[PCollection[tuple[str, ReportColumns]], DeduplicatedReports]):
    """Drop each report with an id that was seen before in the collection.

    The state keeps an id until every window that counted its report has closed. Then no copy can come into one of these
    windows any more: a later copy is late, or names other windows. So the state is bounded by the reports of
    window + allowed lateness (twice the window, if it slides), 16 bytes each.

    Attributes:
        spill: A folder through which the job first groups all ids of a shard, so that it needs no state. It is for
            bounded jobs only. Beam's local runner gives all steps with state to one of its workers.
    """

    specs: Iterable[CollectionSpec]
    spill: Path | None = None

    @no_annotations  # type: ignore[untyped-decorator]  # Beam warns about named outputs
    def expand(self, columns: PCollection[tuple[str, ReportColumns]]) -> DeduplicatedReports:
        """Look for copies by shard, in the global window, because a copy may come in another window."""
        shards: PCollection[Any] = columns
        deduplicate: beam.DoFn = _DeduplicateFn(SharedSpecs.of(self.specs), forgets=not columns.is_bounded)
        if self.spill is not None:
            shards = columns | "GroupColumns" >> GroupColumns(self.spill)
            deduplicate = _GroupedFn(SharedSpecs.of(self.specs))
        kept = shards | "DropCopies" >> beam.ParDo(deduplicate).with_outputs("accounting", main="columns")
        return DeduplicatedReports(kept.columns, kept.accounting)


def _account(served: ServedCollection, copies: ReportColumns) -> Iterator[Any]:
    """Yield the accounting of dropped copies by time slice, at its time."""
    starts, groups = slice_groups(copies.slices, served.slice_size)
    k = len(starts)
    skews = skew_counts(copies.signals, groups, k)
    for start, n, skew in zip(starts.tolist(), np.bincount(groups, minlength=k).tolist(), skews, strict=True):
        if n:
            partial = PartialStatistic(None, Accounting(received=n, duplicate=n), PartialSignals(skew))
            at = served.last_of_slice(start)
            yield beam.pvalue.TaggedOutput("accounting", at_time(at, (served.spec.key, partial)))


@beam.typehints.with_input_types(tuple[str, Iterable[FileRange]])
@beam.typehints.with_output_types(ReportColumns, accounting=KeyedStatistic)
class _GroupedFn(beam.DoFn):
    """Drops copies among all reports of a shard."""

    def __init__(self, specs: SharedSpecs) -> None:
        self._specs = specs
        self._duplicate = counter("duplicate")

    def setup(self) -> None:
        self._served = self._specs.served

    def process(self, element: tuple[str, Iterable[FileRange]]) -> Iterator[Any]:
        _, extents = element
        seen = SeenIds()
        for columns in map(read_columns, extents):
            served = self._served[columns.collection, columns.version]
            fresh = seen.add(columns.report_ids)
            if not fresh.all():
                copies, columns = columns.take(~fresh), columns.take(fresh)
                self._duplicate.inc(len(copies))
                yield from _account(served, copies)
            if len(columns):
                yield at_time(served.last_of_slice(int(columns.slices.min())), columns)


@beam.typehints.with_input_types(tuple[str, ReportColumns])
@beam.typehints.with_output_types(ReportColumns, accounting=KeyedStatistic)
class _DeduplicateFn(beam.DoFn):
    IDS = BagStateSpec("ids", BytesCoder())
    #: 8 random bytes, drawn at every write, and the time of the pending timer.
    TOKEN = ReadModifyWriteStateSpec("token", BytesCoder())
    EXPIRY = TimerSpec("expiry", TimeDomain.WATERMARK)

    #: Shards whose ids a worker keeps in memory.
    MAX_CACHED = 1024

    def __init__(self, specs: SharedSpecs, *, forgets: bool) -> None:
        self._specs = specs
        self._kept_ids = Kept[OrderedDict[str, tuple[bytes, SeenIds]]](OrderedDict)
        self._forgets = forgets
        self._duplicate = counter("duplicate")

    def setup(self) -> None:
        self._served = self._specs.served
        self._cache = self._kept_ids.value

    def process(
        self,
        element: tuple[str, ReportColumns],
        ids: Any = beam.DoFn.StateParam(IDS),
        token: Any = beam.DoFn.StateParam(TOKEN),
        expiry: Any = beam.DoFn.TimerParam(EXPIRY),
    ) -> Iterator[Any]:
        key, columns = element
        served = self._served[columns.collection, columns.version]
        written = token.read() or b""
        seen = self._seen(key, written, ids)
        fresh = seen.add(columns.report_ids)
        if not fresh.all():
            copies, columns = columns.take(~fresh), columns.take(fresh)
            self._duplicate.inc(len(copies))
            yield from _account(served, copies)
        if not len(columns):
            self._keep(key, written, seen)
            return
        pending = struct.unpack_from("<q", written, 8)[0] if written else None
        for start, of_slice in columns.ids_by_slice(served.slice_size):
            until = start + served.remembered_for
            ids.add(pack_ids(until, of_slice))
            if pending is None or until < pending:
                pending = until
                if self._forgets:
                    expiry.set(Timestamp(micros=until * 1000))
        assert pending is not None
        self._write(key, token, pending, seen)
        yield at_time(served.last_of_slice(int(columns.slices.min())), columns)

    @on_timer(EXPIRY)
    def forget(
        self,
        key: Any = beam.DoFn.KeyParam,
        now: Any = beam.DoFn.TimestampParam,
        ids: Any = beam.DoFn.StateParam(IDS),
        token: Any = beam.DoFn.StateParam(TOKEN),
        expiry: Any = beam.DoFn.TimerParam(EXPIRY),
    ) -> None:
        """Free the ids of windows that have closed."""
        kept = unexpired(ids.read(), now.micros // 1000)
        ids.clear()
        self._cache.pop(key, None)
        if not kept:
            token.clear()
            return
        for until, remaining in kept.items():
            ids.add(pack_ids(until, remaining))
        pending = next(iter(kept))
        expiry.set(Timestamp(micros=pending * 1000))
        self._write(key, token, pending, None)

    def _seen(self, key: str, written: bytes, ids: Any) -> SeenIds:
        """Return the ids of a shard, from memory if the state is still what this worker last wrote."""
        # Removed until the state is written: the caller adds ids to it, and a bundle that fails does not write them.
        cached = self._cache.pop(key, None)
        if cached is not None and cached[0] == written:
            return cached[1]
        seen = SeenIds()
        # Without a token, nothing was ever written.
        entries = [unpack_ids(entry)[1] for entry in ids.read()] if written else []
        if entries:
            seen.add(np.concatenate(entries))
        return seen

    def _write(self, key: str, token: Any, pending: int, seen: SeenIds | None) -> None:
        written = secrets.token_bytes(8) + struct.pack("<q", pending)
        token.write(written)
        if seen is not None:
            self._keep(key, written, seen)

    def _keep(self, key: str, written: bytes, seen: SeenIds) -> None:
        """Keep the ids of a shard in memory, with ``written``, which identifies the state that they equal."""
        self._cache[key] = written, seen
        if len(self._cache) > self.MAX_CACHED:
            self._cache.popitem(last=False)
