"""Count no more reports of a sender than its collection allows; reject the others.

State is that of a part of all senders and of the reports that can be counted until the same time. It holds 12 bytes for
each sender and bundle in which the sender had a report that was counted, and is cleared when that time has come. As in
``deduplicate``, a worker keeps the state in memory, and a token says whether its memory is still that of the state.
"""

import secrets
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.coders import BytesCoder
from apache_beam.pvalue import PCollection
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import BagStateSpec, ReadModifyWriteStateSpec, TimerSpec, on_timer

from uldp.collector.collections import YEAR_9000, ServedCollection
from uldp.collector.columns import MixedColumns, ReportColumns
from uldp.collector.counting import accounted
from uldp.collector.sender_cap import CountedOfSenders, SenderShard, by_sender, over_limit
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.rejected import Rejected
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.count import KeyedPartial, accounting_of
from uldp.transforms.internals import Given, Timestamp, no_annotations, typed
from uldp.transforms.metrics import counter
from uldp.transforms.per_process import PerProcess
from uldp.transforms.windows import at_time, globally


class LimitedReports(NamedTuple):
    """The outputs of ``LimitSenders``."""

    columns: PCollection[MixedColumns]  # the reports to be counted
    #: The accounting of the others, for each collection and version, at the time of their slice.
    accounting: PCollection[KeyedPartial]
    rejected: PCollection[Rejected]  # records that hold the others


@dataclass
class LimitSenders(beam.PTransform[PCollection[MixedColumns], LimitedReports]):
    """Reject what is over the limit of a sender, in collections whose spec asks for it."""

    specs: Iterable[CollectionSpec]
    shards: int  # the number of parts of all senders

    @no_annotations  # type: ignore[untyped-decorator]  # Beam warns about named outputs
    def expand(self, columns: PCollection[MixedColumns]) -> LimitedReports:
        """Split by sender, and pass by what has no limit."""
        specs, forgets = SharedSpecs.of(self.specs), not columns.is_bounded
        split = columns | "BySender" >> globally(_SplitFn(specs, self.shards, forgets=forgets), "senders", main="free")
        senders = typed(split.senders, tuple[SenderShard, MixedColumns])
        limited = senders | "CountOfSenders" >> globally(
            _LimitFn(specs, forgets=forgets), "accounting", "rejected", main="columns"
        )
        counted = (typed(split.free, MixedColumns), typed(limited.columns, MixedColumns))
        return LimitedReports(
            counted | "FreeAndLimited" >> beam.Flatten(),
            typed(limited.accounting, KeyedPartial),
            typed(limited.rejected, Rejected),
        )


@beam.typehints.with_input_types(MixedColumns)
class _SplitFn(beam.DoFn):
    def __init__(self, specs: SharedSpecs, shards: int, *, forgets: bool) -> None:
        self._specs = specs
        self._shards = shards
        self._forgets = forgets

    def process(self, parts: MixedColumns) -> Iterator[Any]:
        free, limited = by_sender(parts, self._specs.served, self._shards, forgets=self._forgets)
        if free.parts:
            yield free
        for element in limited.items():
            yield beam.pvalue.TaggedOutput("senders", element)


@beam.typehints.with_input_types(tuple[SenderShard, MixedColumns])
class _LimitFn(beam.DoFn):
    COUNTED = BagStateSpec("counted", BytesCoder())
    #: 8 random bytes, drawn at every write.
    TOKEN = ReadModifyWriteStateSpec("token", BytesCoder())
    EXPIRY = TimerSpec("expiry", TimeDomain.WATERMARK)

    #: Shards that a worker keeps in memory.
    MAX_CACHED = 1024

    def __init__(self, specs: SharedSpecs, *, forgets: bool) -> None:
        self._specs = specs
        self._forgets = forgets
        self._rejected = counter("rejected")
        self._shards = PerProcess[OrderedDict[SenderShard, tuple[bytes, CountedOfSenders]]](OrderedDict)

    def setup(self) -> None:
        self._cache = self._shards.value

    def process(
        self,
        element: tuple[SenderShard, MixedColumns],
        counted: Given = beam.DoFn.StateParam(COUNTED),
        token: Given = beam.DoFn.StateParam(TOKEN),
        expiry: Given = beam.DoFn.TimerParam(EXPIRY),
    ) -> Iterator[Any]:
        shard, parts = element
        written = token.read() or b""
        # Removed until the state is written: a bundle that fails does not write what it adds.
        cached = self._cache.pop(shard, None)
        of_shard = (
            cached[1]
            if cached is not None and cached[0] == written
            else CountedOfSenders.read(counted.read() if written else ())
        )
        entries: list[bytes] = []
        let_through = []
        for part in parts:
            served = self._specs.served[part.collection, part.version]
            admitted, new = of_shard.admit(served, part)
            entries += new
            if admitted.any():
                let_through.append(replace(part.take(admitted), origins=None))
            if not admitted.all():
                yield from self._reject(served, part.take(~admitted))
        if let_through:
            yield MixedColumns(tuple(let_through))
        if entries:
            for entry in entries:
                counted.add(entry)
            if self._forgets and not written:
                expiry.set(Timestamp(micros=shard[1] * 1000))
            written = secrets.token_bytes(8)
            token.write(written)
        self._cache[shard] = written, of_shard
        if len(self._cache) > self.MAX_CACHED:
            self._cache.popitem(last=False)

    @on_timer(EXPIRY)
    def forget(
        self,
        shard: Given = beam.DoFn.KeyParam,
        counted: Given = beam.DoFn.StateParam(COUNTED),
        token: Given = beam.DoFn.StateParam(TOKEN),
    ) -> None:
        """Free the counts of time slices that take no more reports."""
        self._cache.pop(shard, None)
        counted.clear()
        token.clear()

    def _reject(self, served: ServedCollection, others: ReportColumns) -> Iterator[Any]:
        """Yield the accounting and the records of reports that are over the limit."""
        self._rejected.inc(len(others))
        yield from accounting_of(served, accounted(served, others.slices, others.signals, "rejected"))
        for rejected in over_limit(served, others):
            yield beam.pvalue.TaggedOutput("rejected", at_time(min(rejected.publish_time, YEAR_9000 - 1), rejected))
