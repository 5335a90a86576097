"""The first stage: messages to report columns."""

import functools
import gc
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import PCollection

from uldp.collector.collections import YEAR_9000
from uldp.collector.columns import MixedColumns, ReportColumns, by_shard, concatenate
from uldp.collector.counting import account_missing
from uldp.collector.hashing import key_of
from uldp.collector.partial import Partial
from uldp.collector.reader import ReportReader
from uldp.collector.shared_specs import SharedSpecs
from uldp.collector.signals import checked_sender_key
from uldp.schemas.arrays import Times
from uldp.schemas.codec.packed import PackedMessages, message_bytes
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message, Missing
from uldp.schemas.rejected import Rejected, count_reasons
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.transforms.count import KeyedPartial, accounting_of
from uldp.transforms.internals import no_annotations, typed
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.metrics import counter
from uldp.transforms.parse import NOT_MESSAGES
from uldp.transforms.per_process import PerProcess
from uldp.transforms.windows import at_time, globally


class DecodedReports(NamedTuple):
    """The outputs of ``DecodeReports``."""

    #: Reports to be counted unless they are duplicates, keyed by shard of their ids.
    columns: PCollection[tuple[int, MixedColumns]]
    #: The accounting of late and rejected reports and of missing messages, for each collection and version, at the time
    #: of their slice.
    accounting: PCollection[KeyedPartial]
    late: PCollection[Message]  # messages that hold the late reports; none in a bounded collection
    rejected: PCollection[Rejected]  # records that hold the reports that cannot be counted
    missing: PCollection[Missing]  # records of messages that the source lost


@dataclass
class DecodeReports(beam.PTransform[PCollection[Message | Chunk], DecodedReports]):
    """Decode messages into report columns, keyed by one of ``shards`` parts of ids; by none if ids may repeat."""

    specs: Iterable[CollectionSpec]
    shards: int | None  # the number of parts of all ids; None if the reports are not to be deduplicated
    freeze_heap: bool = False
    shard_key: int = field(default=0, repr=False)
    sender_key: bytes | None = field(default=None, repr=False)
    registry_ids: Mapping[int, str] | None = None

    @no_annotations  # type: ignore[untyped-decorator]  # Beam warns about named outputs
    def expand(self, messages: PCollection[Message | Chunk]) -> DecodedReports:
        """Apply the decoder to each bundle."""
        decode = _DecodeFn(
            SharedSpecs.of(self.specs),
            self.shards,
            self.shard_key,
            judge_lateness=not messages.is_bounded,
            freeze_heap=self.freeze_heap,
            sender_key=self.sender_key,
            registry_ids=self.registry_ids,
        )
        decoded = messages | "DecodeColumns" >> globally(
            decode, "accounting", "late", "rejected", "missing", main="columns"
        )
        return DecodedReports(
            typed(decoded.columns, tuple[int, MixedColumns]),
            typed(decoded.accounting, KeyedPartial),
            typed(decoded.late, Message),
            typed(decoded.rejected, Rejected),
            typed(decoded.missing, Missing),
        )


@functools.cache
def _freeze_heap() -> None:
    """Freeze the heap, once in a process; to ask ``gc`` whether it is frozen takes as long as a bundle."""
    gc.freeze()


@beam.typehints.with_input_types(Message | Chunk)
class _DecodeFn(beam.DoFn):
    """Collects the messages of a bundle and decodes them thousands at a time."""

    #: The bytes of messages to decode at once, and the bytes to count for each message besides its data and attributes.
    #: So a batch has 16,384 messages at the most: enough to amortize NumPy's calls, few enough for the caches.
    ROOM = 8 << 20
    MESSAGE_OVERHEAD = 1 << 9
    #: A batch of many collections is up to this many times as large: each of its collections takes as long as a hundred
    #: reports.
    COLLECTIONS, MOST_ROOMS = 125, 8
    #: The bytes of columns to hold back and emit together if they are to be deduplicated: fewer elements need fewer
    #: accesses to state.
    MAX_HELD = 16 << 20
    #: Columns of fewer reports are joined: the next steps take some microseconds for each part of an element.
    WORTH_A_PART = 4096

    def __init__(
        self,
        specs: SharedSpecs,
        shards: int | None,
        shard_key: int,
        *,
        judge_lateness: bool,
        freeze_heap: bool,
        sender_key: bytes | None = None,
        registry_ids: Mapping[int, str] | None = None,
    ) -> None:
        checked = checked_sender_key(specs, sender_key)
        self._specs = specs
        self._reader = PerProcess(
            functools.partial(
                ReportReader, specs, judge_lateness=judge_lateness, sender_key=checked, registry_ids=registry_ids
            )
        )
        self._shards = shards
        self._shard_key = key_of(shard_key)
        self._freeze_heap = freeze_heap
        self._received, self._late, self._rejected = counter("received"), counter("late"), counter("rejected")
        self._too_early, self._expired = counter("too_early"), counter("expired")
        self._missing_messages = counter("missing")

    def setup(self) -> None:
        self._decoder = self._reader.value
        # The garbage collector takes thousands of messages at a time for objects that may stay, and scans all objects
        # again and again. The objects that a worker has loaded by now do stay; without them, a scan takes no time, and
        # a backfill 25 to 45 % less of the processor's. Freeze once in a process, because the garbage of that moment is
        # never freed. Freeze only if the job asks for it, because a program that embeds this step has objects of its
        # own. The request is an argument of the step, because worker processes of Flink and of the local runner get
        # nothing else from the command line.
        if self._freeze_heap:
            _freeze_heap()

    def start_bundle(self) -> None:
        self._clear()
        self._columns: dict[CollectionKey, list[ReportColumns]] = defaultdict(list)
        self._held = 0
        self._partials: dict[CollectionKey, Partial] = defaultdict(Partial)

    def _clear(self) -> None:
        self._messages: list[Message] = []
        self._packed: list[PackedMessages] = []
        self._missing: list[Missing] = []
        self._room = self.ROOM * min(max(1, len(self._specs.served) // self.COLLECTIONS), self.MOST_ROOMS)

    def process(self, element: Message | Chunk) -> Iterable[Any] | None:
        if isinstance(element, Chunk):
            packed = PackedMessages.of(element.messages)
            self._packed.append(packed)
            self._missing += element.missing
            self._room -= self.MESSAGE_OVERHEAD * len(packed) + packed.nbytes
        elif not isinstance(element, Message):
            raise TypeError(NOT_MESSAGES.format(type(element).__name__))
        else:  # from a runner's own source: this runs for each message
            self._messages.append(element)
            self._room -= self.MESSAGE_OVERHEAD + message_bytes(element)
        return None if self._room > 0 else self._decode()

    def finish_bundle(self) -> Iterator[Any]:
        yield from self._decode()
        yield from self._emit()

    def _decode(self) -> Iterator[Any]:
        decoded = self._decoder.decode(PackedMessages.join([*self._packed, PackedMessages.of(self._messages)]))
        missing = self._missing
        self._clear()
        self._received.inc(decoded.received)
        self._late.inc(decoded.late_reports)
        self._rejected.inc(decoded.rejected_reports)
        reasons = count_reasons(decoded.rejected)
        if reasons[Reason.UNKNOWN_VERSION] or reasons[Reason.UNKNOWN_COLLECTION]:
            self._specs.wanted = True
        self._too_early.inc(reasons[Reason.TOO_EARLY])
        self._expired.inc(reasons[Reason.EXPIRED])
        for message in decoded.late:
            yield beam.pvalue.TaggedOutput("late", at_time(message.publish_time, message))
        for rejected in decoded.rejected:
            at = min(max(rejected.publish_time, 0), YEAR_9000 - 1)  # Beam has no later times
            yield beam.pvalue.TaggedOutput("rejected", at_time(at, rejected))
        self._missing_messages.inc(sum(record.count for record in missing))
        for record in missing:
            yield beam.pvalue.TaggedOutput("missing", at_time(min(max(record.before, 0), YEAR_9000 - 1), record))
        for columns in decoded.columns:
            self._columns[columns.collection, columns.version].append(columns)
            self._held += columns.nbytes
        for key, partial in chain(account_missing(self._specs.served, missing), decoded.partials.items()):
            self._partials[key] += partial
        if self._shards is None or self._held >= self.MAX_HELD:
            yield from self._emit()

    def _emit(self) -> Iterator[Any]:
        if self._columns:
            by_size: dict[int, list[Times]] = defaultdict(list)
            for key, parts in self._columns.items():
                if sum(map(len, parts)) < self.WORTH_A_PART * len(parts):
                    parts[:] = [concatenate(parts)]
                by_size[self._specs.served[key].slice_size] += [part.slices for part in parts]
            # The time of the oldest slice, so that none of its windows closes while the elements are under way.
            at = min(int(np.concatenate(slices).min()) + size - 1 for size, slices in by_size.items())
            of_all = chain.from_iterable(self._columns.values())
            for shard, mixed in by_shard(of_all, self._shards or 1, self._shard_key):
                yield at_time(at, (shard, mixed))
        for key, partial in self._partials.items():
            yield from accounting_of(self._specs.served[key], partial)
        self._columns.clear()
        self._partials.clear()
        self._held = 0
