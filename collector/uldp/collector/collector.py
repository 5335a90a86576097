"""Count messages in one process and without Beam: for notebooks, scripts, and whoever has an engine of their own."""

import secrets
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from uldp.collector.collections import ServedCollection
from uldp.collector.columns import MixedColumns, ReportColumns, concatenate
from uldp.collector.counting import accounted, count_support
from uldp.collector.ends import SliceReports
from uldp.collector.estimating import estimates_of
from uldp.collector.firing import NEVER, windows_of
from uldp.collector.groups import Place
from uldp.collector.hashing import SECRET_BYTES
from uldp.collector.partial import Partial, stack
from uldp.collector.reader import ReportReader
from uldp.collector.sealing import NOTHING, ONLY, WindowSum, p_values_of, seal
from uldp.collector.seen import SeenIds, are_exact, masked_ids
from uldp.collector.sender_cap import CountedOfSenders, over_limit
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.arrays import Mask
from uldp.schemas.codec.packed import grouped
from uldp.schemas.estimate import Estimate
from uldp.schemas.records import Message
from uldp.schemas.rejected import Rejected
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.statistic import Statistic

#: Bytes of messages to decode at once: enough to amortize NumPy's calls, few enough for the caches.
_AT_ONCE = 8 << 20


class Collector:
    """Counts what ``uldp backfill`` counts of the same messages in the same order, and gives the same estimates.

    No report is late, because no window closes: read ``statistics`` and ``estimates`` as often as you like, and add
    more. Each report that names a collection of yours is in the accounting of a window, and is counted, a duplicate, or
    rejected. Everything is in memory: about 20 bytes for the id of each counted report (30 if the spec has
    ``dedup: exact``), and the cells of each window.

    ::

        collector = Collector([spec])
        rejected = collector.add(messages)
        for estimate in collector.estimates():
            print(estimate.window_start, estimate.tables[0].values)

    Args:
        deduplicate: Whether to count a report id once.
        sender_key: A secret of 32 bytes or more; needed if a spec sets ``limits.max_reports_per_sender``.
        registry_ids: What the ids of a schema registry mean; see ``RegistryIds``.

    Raises:
        ValueError: if no spec is given, two have the same collection and version, or the key is missing or too short.
    """

    def __init__(
        self,
        specs: Iterable[CollectionSpec],
        *,
        deduplicate: bool = True,
        sender_key: bytes | None = None,
        registry_ids: Mapping[int, str] | None = None,
    ) -> None:
        self._specs = SharedSpecs.of(specs)
        self._reader = ReportReader(self._specs, judge_lateness=False, sender_key=sender_key, registry_ids=registry_ids)
        self._ids = SeenIds(secrets.token_bytes(SECRET_BYTES)) if deduplicate else None
        self._senders = CountedOfSenders()
        self._slices = defaultdict[CollectionKey, dict[int, Partial]](dict)

    def add(self, messages: Iterable[bytes | Message]) -> list[Rejected]:
        """Count messages.

        Args:
            messages: Bodies of messages, which are published now; or messages with a publish time of their own.

        Returns:
            A record for what is not counted, with the reason. Copies are counted once, and have no record.
        """
        rejected: list[Rejected] = []
        for some in grouped(map(_published, messages), _AT_ONCE):
            decoded = self._reader.decode(some)
            rejected += decoded.rejected
            for key, part in decoded.partials.items():
                self._take(key, part)
            columns = defaultdict[CollectionKey, list[ReportColumns]](list)
            for each in decoded.columns:
                columns[each.collection, each.version].append(each)
            rejected += self._count([concatenate(parts) for parts in columns.values()])
        return rejected

    def statistics(self) -> Iterator[Statistic]:
        """Yield the counts of each window, by collection, version and start."""
        for key in sorted(self._slices):
            yield from self._windows(self._specs.served[key], stack(self._slices[key]))

    def estimates(self) -> Iterator[Estimate]:
        """Yield the estimates of each window, by collection, version and start, and in the order of the spec.

        A window has none if it has fewer reports than ``limits.min_reports``, or a flag at which the spec stops.
        """
        for statistic in self.statistics():
            yield from estimates_of(self._specs.of_key((statistic.collection, statistic.version)), statistic)

    def _take(self, key: CollectionKey, part: Partial) -> None:
        slices = self._slices[key]
        for start, of_slice in part.slices():
            slices[start] = slices[start] + of_slice if start in slices else of_slice

    def _count(self, parts: list[ReportColumns]) -> list[Rejected]:
        """Count the reports that are no copies, and return records of those over the limit of their senders."""
        rejected: list[Rejected] = []
        fresh = self._are_new(parts)
        for part in parts:
            served, of_part = self._specs.served[part.collection, part.version], fresh[: len(part)]
            fresh = fresh[len(part) :]
            if not of_part.all():
                copies = accounted(served, part.slices[~of_part], part.signals[~of_part], "duplicate")
                self._take(served.spec.key, copies)
                part = part.take(of_part)
            if served.sender_cap is not None and len(part):
                admitted, _ = self._senders.admit(served, part)
                if not admitted.all():
                    over = part.take(~admitted)
                    self._take(served.spec.key, accounted(served, over.slices, over.signals, "rejected"))
                    rejected += over_limit(served, over)
                part = part.take(admitted)
            if len(part):
                place = Place(served.spec.key, 0)
                for _, span in count_support(served, {place: [part]}, ServedCollection.span_start):
                    self._take(served.spec.key, span)
        return rejected

    def _are_new(self, parts: list[ReportColumns]) -> Mask:
        """Return which of the reports of all parts have a new id."""
        if self._ids is None or not parts:
            return np.ones(sum(map(len, parts)), dtype=np.bool_)
        mixed = MixedColumns(tuple(parts))
        return self._ids.add(masked_ids(mixed), exact=are_exact(self._specs.served, mixed)).new

    def _windows(self, served: ServedCollection, slices: Partial) -> Iterator[Statistic]:
        """Sum the slices of each window of a collection, and seal the sums."""
        size, ends = served.window_size, SliceReports.of(served, dict(slices.slices()))
        starts = windows_of(slices.slots, size, served.slice_size, served.offset, -NEVER, NEVER).tolist()
        sums = [WindowSum.of(ends.ended(start, slices.window(start, start + size)), start) for start in starts]
        windows = [(start, total) for start, total in zip(starts, sums, strict=True) if total.accounting != NOTHING]
        p_values = p_values_of(served.protocol.decoder, [total for _, total in windows])
        for (start, total), tested in zip(windows, p_values, strict=True):
            yield seal(served, total, start, start + size, ONLY, tested)


def _published(message: bytes | Message) -> Message:
    """Return a message as it is, and a body as a message of this moment."""
    return message if isinstance(message, Message) else Message(message, time.time_ns() // 1_000_000)
