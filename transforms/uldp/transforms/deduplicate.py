"""Count a report once: drop copies by (collection, report id), over the time in which a copy could still be counted.

State is packed: each shard of the ids of all collections has bags of byte strings, see ``remembered``. A worker keeps
the ids of the shards that it serves in memory. Every write stores a new random token in the state; the worker compares
tokens to see whether its memory is still that of the state.

State and memory hold keyed hashes of ids. Their key is secret and of the shard alone. It is in the state with them, so
it is that of the hashes after each restart, from a savepoint too, and no option, log or result has it.

A shard is of all collections, because Beam takes as long to write a few ids as thousands. With shards of one
collection, a bundle with reports of a thousand collections wrote sixteen thousand times.
"""

import secrets
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.coders import BytesCoder
from apache_beam.pvalue import PCollection
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import BagStateSpec, ReadModifyWriteStateSpec, TimerSpec, on_timer

from uldp.collector.columns import MixedColumns
from uldp.collector.counting import accounted
from uldp.collector.hashing import SECRET_BYTES
from uldp.collector.seen import are_exact, expiries, forget_at, masked_ids
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.arrays import Mask
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.count import KeyedPartial, accounting_of
from uldp.transforms.internals import Given, Timestamp, no_annotations, typed
from uldp.transforms.metrics import counter
from uldp.transforms.per_process import PerProcess
from uldp.transforms.remembered import BAGS, Remembered
from uldp.transforms.windows import globally


class DeduplicatedReports(NamedTuple):
    """The outputs of ``DeduplicateReports``."""

    columns: PCollection[MixedColumns]  # reports without copies
    #: The accounting of dropped copies, for each collection and version, at the time of their slice.
    accounting: PCollection[KeyedPartial]


@dataclass
class DeduplicateReports(beam.PTransform[PCollection[tuple[int, MixedColumns]], DeduplicatedReports]):
    """Drop each report with an id that was seen before in the collection.

    The state keeps an id until every window that counted its report has closed. Then no copy can come into one of these
    windows any more: a later copy is late, or names other windows. So the state is bounded by the reports of
    window + allowed lateness (twice the window, if it slides), and a quarter of that: 8 bytes each, or 16 if the spec
    has ``dedup: exact``.
    """

    specs: Iterable[CollectionSpec]

    @no_annotations  # type: ignore[untyped-decorator]  # Beam warns about named outputs
    def expand(self, columns: PCollection[tuple[int, MixedColumns]]) -> DeduplicatedReports:
        """Look for copies by shard, in the global window, because a copy may come in another window."""
        deduplicate = _DeduplicateFn(SharedSpecs.of(self.specs), forgets=not columns.is_bounded)
        found = columns | "DropCopies" >> globally(deduplicate, "accounting", main="columns")
        return DeduplicatedReports(typed(found.columns, MixedColumns), typed(found.accounting, KeyedPartial))


@beam.typehints.with_input_types(tuple[int, MixedColumns])
class _DeduplicateFn(beam.DoFn):
    IDS = tuple(BagStateSpec(f"ids{bag}", BytesCoder()) for bag in range(BAGS))
    #: The secret bytes of the shard's hashes, drawn when it is first written, and 8 random bytes, drawn at every write.
    TOKEN = ReadModifyWriteStateSpec("token", BytesCoder())
    EXPIRY = TimerSpec("expiry", TimeDomain.WATERMARK)

    #: Shards whose ids a worker keeps in memory.
    MAX_CACHED = 1024

    def __init__(self, specs: SharedSpecs, *, forgets: bool) -> None:
        self._specs = specs
        self._duplicate = counter("duplicate")
        self._ids = PerProcess[OrderedDict[int, tuple[bytes, Remembered]]](OrderedDict)
        self._forgets = forgets

    def setup(self) -> None:
        self._cache = self._ids.value

    def process(
        self,
        element: tuple[int, MixedColumns],
        token: Given = beam.DoFn.StateParam(TOKEN),
        expiry: Given = beam.DoFn.TimerParam(EXPIRY),
        # Beam finds the states of a step by the defaults of its parameters.
        bag_0: Given = beam.DoFn.StateParam(IDS[0]),
        bag_1: Given = beam.DoFn.StateParam(IDS[1]),
        bag_2: Given = beam.DoFn.StateParam(IDS[2]),
        bag_3: Given = beam.DoFn.StateParam(IDS[3]),
        bag_4: Given = beam.DoFn.StateParam(IDS[4]),
        bag_5: Given = beam.DoFn.StateParam(IDS[5]),
        bag_6: Given = beam.DoFn.StateParam(IDS[6]),
        bag_7: Given = beam.DoFn.StateParam(IDS[7]),
    ) -> Iterator[Any]:
        shard, parts = element
        bags = bag_0, bag_1, bag_2, bag_3, bag_4, bag_5, bag_6, bag_7
        written = token.read() or b""
        remembered = self._remembered(shard, written, bags)
        until = expiries(self._specs.served, parts) if self._forgets else 0
        fresh, lots = remembered.ids.add(masked_ids(parts), until, are_exact(self._specs.served, parts))
        yield from self._drop_copies(parts, fresh)
        if not fresh.any():
            self._keep(shard, written, remembered)
            return
        pending = forget_at(remembered.expiring) if written else None
        remembered.write(bags, lots)
        if self._forgets and (due := forget_at(remembered.expiring)) != pending:
            expiry.set(Timestamp(micros=due * 1000))
        self._keep(shard, _write(token, remembered.secret), remembered)

    @on_timer(EXPIRY)
    def forget(
        self,
        shard: Given = beam.DoFn.KeyParam,
        now: Given = beam.DoFn.TimestampParam,
        token: Given = beam.DoFn.StateParam(TOKEN),
        expiry: Given = beam.DoFn.TimerParam(EXPIRY),
        bag_0: Given = beam.DoFn.StateParam(IDS[0]),
        bag_1: Given = beam.DoFn.StateParam(IDS[1]),
        bag_2: Given = beam.DoFn.StateParam(IDS[2]),
        bag_3: Given = beam.DoFn.StateParam(IDS[3]),
        bag_4: Given = beam.DoFn.StateParam(IDS[4]),
        bag_5: Given = beam.DoFn.StateParam(IDS[5]),
        bag_6: Given = beam.DoFn.StateParam(IDS[6]),
        bag_7: Given = beam.DoFn.StateParam(IDS[7]),
    ) -> None:
        """Free the ids of windows that have closed."""
        bags = bag_0, bag_1, bag_2, bag_3, bag_4, bag_5, bag_6, bag_7
        remembered = self._remembered(shard, token.read() or b"", bags)
        remembered.forget(bags, now.micros // 1000)
        if not remembered.expiring:
            token.clear()
            return
        expiry.set(Timestamp(micros=forget_at(remembered.expiring) * 1000))
        self._keep(shard, _write(token, remembered.secret), remembered)

    def _drop_copies(self, parts: MixedColumns, fresh: Mask) -> Iterator[Any]:
        """Yield the accounting of the reports that are not ``fresh``, and then the others, if there are any."""
        if fresh.all():
            yield parts
            return
        others, start = [], 0
        for part in parts:
            of_part = fresh[start : start + len(part)]
            start += len(part)
            if of_part.all():
                others.append(part)
                continue
            copies = part.take(~of_part)
            self._duplicate.inc(len(copies))
            served = self._specs.served[part.collection, part.version]
            yield from accounting_of(served, accounted(served, copies.slices, copies.signals, "duplicate"))
            if of_part.any():
                others.append(part.take(of_part))
        if others:
            yield MixedColumns(tuple(others))

    def _remembered(self, shard: int, written: bytes, bags: Iterable[Any]) -> Remembered:
        """Return the ids of a shard, from memory if the state is still what this worker last wrote."""
        # Removed until the state is written: the caller adds ids to it, and a bundle that fails does not write them.
        cached = self._cache.pop(shard, None)
        if cached is not None and cached[0] == written:
            return cached[1]
        if not written:  # nothing is in state
            return Remembered(secrets.token_bytes(SECRET_BYTES))
        return Remembered.read(written[:SECRET_BYTES], bags)

    def _keep(self, shard: int, written: bytes, remembered: Remembered) -> None:
        """Keep the ids of a shard in memory, with ``written``, which identifies the state that they equal."""
        self._cache[shard] = written, remembered
        if len(self._cache) > self.MAX_CACHED:
            self._cache.popitem(last=False)


def _write(token: Any, secret: bytes) -> bytes:
    """Write the secret of a shard's hashes and a new token, and return both."""
    written = secret + secrets.token_bytes(8)
    token.write(written)
    return written
