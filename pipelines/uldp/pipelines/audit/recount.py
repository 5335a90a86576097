"""Count the reports of messages again: of which window each is, and whether it is late or rejected."""

import secrets
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from uldp.collector.columns import MixedColumns, ReportColumns
from uldp.collector.hashing import SECRET_BYTES
from uldp.collector.partial import Partial, numbers_of
from uldp.collector.reader import Decoded, ReportReader
from uldp.collector.seen import SeenIds, masked_ids
from uldp.collector.sender_cap import CountedOfSenders
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.arrays import Times
from uldp.schemas.codec.packed import PackedMessages
from uldp.schemas.pane import Accounting
from uldp.schemas.reasons import Reason
from uldp.schemas.rejected import count_reasons
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.transforms.slide import slide

#: A time slice of a collection and version: (key, start).
SliceKey = tuple[CollectionKey, int]
#: Collection and version, start and end of a window in milliseconds.
WindowKey = tuple[str, int, int, int]
#: A secret that no result depends on: senders are not compared.
_NO_KEY = bytes(32)


@dataclass(slots=True)
class Tally:
    """The numbers of reports of some messages."""

    received: int = 0  # all reports; a message that cannot be decoded counts as one
    #: The accounting of each time slice, copies included: which one is a copy depends on the order of reading.
    slices: dict[SliceKey, Accounting] = field(default_factory=lambda: defaultdict(Accounting))
    reasons: Counter[str] = field(default_factory=Counter)  # the rejected reports, by reason

    @classmethod
    def of(cls, decoded: Decoded, served: SharedSpecs) -> "Tally":
        """Count what a decoder returned."""
        tally = cls(decoded.received, reasons=count_reasons(decoded.rejected))
        for key, parts in decoded.partials.items():
            for start, part in parts.slices():
                tally.slices[key, start] += part.accounting
        for columns in decoded.columns:
            starts, reports = np.unique(columns.slices, return_counts=True)
            for start, n in zip(starts.tolist(), reports.tolist(), strict=True):
                tally.slices[(columns.collection, columns.version), start] += Accounting(received=n, counted=n)
        return tally

    def add(self, other: "Tally") -> None:
        """Add the numbers of other messages."""
        self.received += other.received
        self.reasons.update(other.reasons)
        for slot, accounting in other.slices.items():
            self.slices[slot] += accounting

    def windows(self, specs: SharedSpecs) -> dict[WindowKey, Accounting]:
        """Return the accounting of each window that has a report."""
        by_key: dict[CollectionKey, dict[int, Partial]] = defaultdict(dict)
        for (key, start), accounting in self.slices.items():
            by_key[key][start] = Partial(np.zeros(1, dtype=np.int64), numbers_of(1, **asdict(accounting)))
        return {
            (*key, start, start + served.window_size): total.accounting
            for key, served in specs.served.items()
            for start, total in slide(by_key[key], served.window_size, served.slice_size, served.offset)
            if total.accounting.received
        }


class Recount:
    """Counts messages, thousands at a time."""

    def __init__(
        self,
        specs: Iterable[CollectionSpec],  # the collections of the job
        *,
        judge_lateness: bool,  # whether the job was a stream
        # Whether an id is another one in another time slice, as for a stream, which forgets ids.
        one_id_a_slice: bool = False,
        registry_ids: Mapping[int, str] | None = None,  # as the job had them, see ``ReportReader``
    ) -> None:
        self.specs = SharedSpecs.of(specs)
        self._one_id_a_slice = one_id_a_slice
        self._decoder = ReportReader(
            self.specs, judge_lateness=judge_lateness, sender_key=_NO_KEY, registry_ids=registry_ids
        )
        self._judge_lateness = judge_lateness
        self._seen = SeenIds(secrets.token_bytes(SECRET_BYTES))
        self._senders = CountedOfSenders()
        self._latest: dict[str, int] = {}
        #: Number of reports with different ids, of those that can be counted, by collection. Those over the limit of
        #: their sender are not: they are rejected, in ``tally`` too.
        self.different: Counter[str] = Counter()
        self.tally = Tally()  # the numbers of all messages
        #: Time slices with reports that a stream may have put elsewhere: their messages came out of order, and the
        #: watermark at which the job read them decides what became of them.
        self.unsure: set[SliceKey] = set()

    def add(self, messages: PackedMessages, clock: str = "") -> None:
        """Count messages in the order of reading; ``clock`` names what part of the source gave the publish times."""
        decoded = self._decoder.decode(messages)
        self.tally.add(Tally.of(decoded, self.specs))
        self._remember(decoded.columns)
        if self._judge_lateness and len(messages):
            self._compare(messages, clock)

    def tally_of(self, messages: PackedMessages) -> Tally:
        """Count messages apart."""
        return Tally.of(self._decoder.decode(messages), self.specs)

    def _remember(self, columns: Iterable[ReportColumns]) -> None:
        for part in columns:
            ids = masked_ids(MixedColumns((part,)))
            if self._one_id_a_slice:
                ids[:, 1] += part.slices.view(np.uint64)
            fresh = self._seen.add(
                ids, exact=self.specs.served[part.collection, part.version].spec.dedup == "exact"
            ).new
            self.different[part.collection] += int(fresh.sum()) - self._over_limit(part.take(fresh))

    def _over_limit(self, part: ReportColumns) -> int:
        """Account for reports without copies that are over the limit of their sender; return their number."""
        served = self.specs.served[part.collection, part.version]
        if served.sender_cap is None or not len(part):
            return 0
        admitted, _ = self._senders.admit(served, part)
        starts, over = np.unique(part.slices[~admitted], return_counts=True)
        for start, n in zip(starts.tolist(), over.tolist(), strict=True):
            self.tally.slices[served.spec.key, start] += Accounting(counted=-n, rejected=n)
        n = int(over.sum())
        self.tally.reasons.update({Reason.OVER_SENDER_LIMIT: n} if n else {})
        return n

    def _compare(self, messages: PackedMessages, clock: str) -> None:
        """Find slices that depend on when messages were read that came behind later ones."""
        latest: Times = np.maximum(np.maximum.accumulate(messages.publish_times), self._latest.get(clock, -1))
        self._latest[clock] = int(latest[-1])
        behind = np.flatnonzero(messages.publish_times < latest)
        if not len(behind):
            return
        late = messages.take(behind)
        one, other = self.tally_of(late), self.tally_of(replace(late, publish_times=latest.take(behind)))
        self.unsure |= {
            slot for slot in one.slices.keys() | other.slices.keys() if one.slices.get(slot) != other.slices.get(slot)
        }
