"""Decode and validate messages, thousands at a time, and give a reason for each report that cannot be counted.

The decoder is pure: it takes messages and returns columns, late messages and rejected records. Each report ends in
exactly one of the three, so received = decoded + late + rejected holds for each call.

Each report that names a served collection and version is accounted in one time slice, see ``Judged.slots``, so that
the accounting of a collection misses no report.

A batch of a hostile sender may hold a hundred thousand reports that cannot be counted. So the decoder keeps the reports
of one message that share a verdict together, as one batch in one record: the output is no larger than a small multiple
of the input, and a rejected report costs about as much time as a counted one.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import metadata
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from uldp.collector.collections import YEAR_9000
from uldp.collector.columns import ReportColumns, slice_groups
from uldp.collector.judge import COUNTED, LATE, Judged, judge, reason_of, unit_of_time
from uldp.collector.openings import Openings
from uldp.collector.origins import Origins
from uldp.collector.parse import AlikeReports, MessageParser
from uldp.collector.partial import Partial, numbers_of
from uldp.collector.plain import Unparsed
from uldp.collector.rejects import rejected_records
from uldp.collector.shared_specs import SharedSpecs
from uldp.collector.signals import (
    SenderCounts,
    checked_sender_key,
    sender_digest,
    signal_bits,
    skew_counts,
)
from uldp.schemas.arrays import Digests, Rows, SignalBits, Times
from uldp.schemas.codec.encode import encode_batch
from uldp.schemas.codec.packed import PackedMessages
from uldp.schemas.codec.registry import RegistryIds
from uldp.schemas.reasons import Reason
from uldp.schemas.records import NO_ATTRIBUTES, SENDER, Message
from uldp.schemas.rejected import Rejected, joined_rejected
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec

#: How many bytes of a message that is too large its rejected record keeps.
STORED_BYTES = 4096


@dataclass(slots=True)
class Decoded:
    """The outcome of decoding several messages.

    Attributes:
        received: Number of reports that arrived; a message that cannot be decoded counts as one report, and a batch of
            an unknown collection or version as those whose ids and times it holds.
        columns: Reports that the next stages count unless they are duplicates.
        late: Messages that hold the reports that were published after their windows had closed.
        late_reports: Number of these reports.
        rejected: Records that hold the reports that cannot be counted.
        partials: For each collection, the accounting and clock skew of its late and rejected reports, and the counts of
            all senders, by the start of their time slice.
    """

    received: int = 0
    columns: list[ReportColumns] = field(default_factory=list)
    late: list[Message] = field(default_factory=list)
    late_reports: int = 0
    rejected: list[Rejected] = field(default_factory=list)
    partials: dict[CollectionKey, Partial] = field(default_factory=lambda: defaultdict(Partial))

    @property
    def rejected_reports(self) -> int:
        """Number of reports in ``rejected``."""
        return sum(record.reports for record in self.rejected)


class ReportReader:
    """Decodes and validates messages, thousands at a time.

    Args:
        specs: The served collections; the decoder rejects reports of other collections.
        judge_lateness: Whether a report that was published after its windows closed is late. In a bounded job no
            window has closed, and every report is counted.
        sender_key: The key of ``sender_digest``; needed if a spec limits reports per sender.
        registry_ids: What the ids of a schema registry mean, see ``RegistryIds``. The header of a schema replaces an id
            first of all, so no output holds a known id.

    Raises:
        ValueError: if the key is needed and missing, or too short, or if an id means no schema.
    """

    def __init__(
        self,
        specs: Iterable[CollectionSpec],
        *,
        judge_lateness: bool,
        sender_key: bytes | None = None,
        registry_ids: Mapping[int, str] | None = None,
    ) -> None:
        specs = SharedSpecs.of(specs)
        self._specs = specs
        self._known = _Known.of(specs)
        self._judge_lateness = judge_lateness
        self._sender_key = checked_sender_key(specs, sender_key)
        self._registry = RegistryIds(registry_ids or {})
        self._software = metadata.version("uldp-stream")

    def decode(self, messages: Sequence[Message]) -> Decoded:
        """Decode ``messages``; no input raises, and each report ends in ``columns``, ``late`` or ``rejected``."""
        out = Decoded()
        packed = PackedMessages.of(messages)
        packed = replace(packed, bodies=self._registry.reframed(packed.bodies))
        dated = (packed.publish_times >= 0) & (packed.publish_times < YEAR_9000)
        if not dated.all():
            undated = Unparsed(np.flatnonzero(~dated), Reason.INVALID_TIME)
            self._reject_all([undated], packed, partial(_time_of, packed), out)
            packed = packed.take(np.flatnonzero(dated))
        if len(packed):
            self._specs.settle(int(packed.publish_times.max()))
        known = self._newest()
        for part, parser in known.openings.split(packed):
            self._decode(part, parser, out, caps=known.caps)
        out.rejected = joined_rejected(out.rejected)
        return out

    def _newest(self) -> "_Known":
        """Return what is known of the specs as they are now; threads may each look it up anew."""
        known = self._known
        if known.edition != self._specs.edition:
            self._known = known = _Known.of(self._specs)
        return known

    def _decode(self, packed: PackedMessages, parser: MessageParser, out: Decoded, *, caps: bool) -> None:
        """Decode messages for which the same collections are open."""
        parsed, unparsed = parser.parse(packed.bodies)
        self._reject_all(unparsed, packed, lambda origin: parser.detail(packed.bodies[origin]), out)
        senders = self._senders(packed)
        origins = Origins.of(packed, senders) if senders is not None and caps else None
        for alike in parsed:
            reports = alike.reports
            out.received += len(reports)
            published = packed.publish_times[reports.origins]
            judged = judge(reports, published, judge_lateness=self._judge_lateness)
            signals = signal_bits(judged.observed, judged.published, judged.improbable)
            if senders is None and not judged.verdicts.any():
                out.columns += _columns(alike, judged.slices, signals)
                continue
            for served, start, end in alike.spans():
                self._distribute(judged.cut(served, start, end), signals[start:end], packed, senders, origins, out)

    def _senders(self, messages: PackedMessages) -> Digests | None:
        """Return a digest of each message's sender key, 0 for no key; or None if no spec limits reports per sender."""
        if self._sender_key is None:
            return None
        senders = {row: each[SENDER] for row, each in messages.attributes.items() if SENDER in each}
        digests = {each: sender_digest(each, self._sender_key) for each in {*senders.values()}}
        found = np.zeros(len(messages), dtype=np.uint64)
        found[[*senders]] = [digests[each] for each in senders.values()]
        return found

    def _reject_all(
        self, unparsed: Iterable[Unparsed], messages: PackedMessages, detail: Callable[[int], str], out: Decoded
    ) -> None:
        """Reject messages as a whole; ``detail`` says what is wrong with one of them."""
        bodies = messages.bodies
        for each in unparsed:
            data = bodies.at(each.origins)
            if each.reason is Reason.TOO_LARGE:
                data = [body[:STORED_BYTES] for body in data]
            out.received += each.reports * len(data)
            of_row = partial(_detail_of_row, each.origins, detail)
            out.rejected += rejected_records(self._why(each.reason, each.reports), messages, each.origins, data, of_row)
            if each.served is not None:
                slots = each.served.slice_start(messages.publish_times[each.origins])
                starts, n = np.unique(slots, return_counts=True)
                out.partials[each.served.spec.key] += Partial(starts, numbers_of(len(starts), received=n, rejected=n))

    def _why(self, reason: Reason, reports: int) -> Rejected:
        """Return a record that says why messages of so many reports are rejected, and nothing of them."""
        return Rejected("decode", reason, "", (), NO_ATTRIBUTES, (), "", 1, self._software, reports)

    def _distribute(
        self,
        judged: Judged,
        signals: SignalBits,
        messages: PackedMessages,
        senders: Digests | None,
        origins: Origins | None,
        out: Decoded,
    ) -> None:
        """Distribute the reports of one collection to the fields of ``out`` by their verdicts."""
        parsed, verdicts = judged.parsed, judged.verdicts
        spec = parsed.served.spec
        columns = ReportColumns(*spec.key, parsed.report_ids, judged.slices, parsed.payloads, signals)
        if origins is not None and spec.limits.cap_senders:
            columns = replace(columns, origins=origins.of_reports(parsed.origins, parsed.event_times))
        slots = judged.slots()
        if senders is not None and spec.limits.max_reports_per_sender is not None:
            _count_senders(spec.key, slots, senders[parsed.origins], out)
        uncounted = np.flatnonzero(verdicts)
        if not len(uncounted):
            out.columns.append(columns)
            return
        if len(uncounted) < len(verdicts):
            out.columns.append(columns.take(verdicts == COUNTED))
        _account(judged, uncounted, slots, signals, out)
        for verdict in np.flatnonzero(np.bincount(verdicts[uncounted])).tolist():
            of_verdict = uncounted[verdicts[uncounted] == verdict]
            if verdict == LATE:
                out.late_reports += len(of_verdict)
                for rows in _by_message(judged, of_verdict):
                    message = messages[int(parsed.origins[rows[0]])]
                    out.late.append(message._replace(data=_only(judged, rows, message.data)))
            else:
                out.rejected += self._records(judged, of_verdict, messages)

    def _records(self, judged: Judged, rows: Rows, messages: PackedMessages) -> Iterator[Rejected]:
        """Yield records of the reports at ``rows``, which have one verdict: those of a message together."""
        parsed, bodies = judged.parsed, messages.bodies
        reason = reason_of(int(judged.verdicts[rows[0]]))
        if not parsed.batched:
            origins = parsed.origins[rows]
            detail = partial(_detail, judged, rows)
            yield from rejected_records(self._why(reason, 1), messages, origins, bodies.at(origins), detail)
            return
        for of_message in _by_message(judged, rows):
            origin = parsed.origins[of_message[:1]]
            data = [_only(judged, of_message, bodies[int(origin[0])])]
            why = self._why(reason, len(of_message))
            yield from rejected_records(why, messages, origin, data, partial(_detail, judged, of_message))


class _Known(NamedTuple):
    """What is looked up once of the specs, until they change.

    Attributes:
        edition: That of the specs.
        openings: The parsers.
        caps: Whether one of the specs limits the reports of a sender that count.
    """

    edition: int
    openings: Openings
    caps: bool

    @classmethod
    def of(cls, specs: SharedSpecs) -> Self:
        """Look it up."""
        # First the edition: if the specs change meanwhile, the next batch looks again.
        edition = specs.edition
        return cls(edition, Openings(specs.served), any(spec.limits.cap_senders for spec in specs))


def _time_of(messages: PackedMessages, origin: int) -> str:
    """Return what is wrong with a message whose publish time is none."""
    time = int(messages.publish_times[origin])
    return f"publish time {time}{unit_of_time(time)}"


def _detail_of_row(origins: Rows, detail: Callable[[int], str], row: int) -> str:
    """Return the detail of the message at one of the rows."""
    return detail(int(origins[row]))


def _detail(judged: Judged, rows: Rows, at: int) -> str:
    """Return the detail of the report at one of the rows."""
    return judged.detail(int(rows[at]))


def _columns(alike: AlikeReports, slices: Times, signals: SignalBits) -> Iterator[ReportColumns]:
    """Yield the columns of each collection."""
    reports = alike.reports
    for served, start, end in alike.spans():
        yield ReportColumns(
            *served.spec.key,
            reports.report_ids[start:end],
            slices[start:end],
            reports.payloads[start:end],
            signals[start:end],
        )


def _account(judged: Judged, rows: Rows, slots: Times, signals: SignalBits, out: Decoded) -> None:
    """Add the late and rejected reports at ``rows`` to the accounting and the clock skew of their time slices."""
    served = judged.parsed.served
    starts, groups = slice_groups(slots[rows], served.slice_size)
    k = len(starts)
    received = np.bincount(groups, minlength=k)
    late = np.bincount(groups[judged.verdicts[rows] == LATE], minlength=k)
    skew = skew_counts(signals[rows], groups, k)
    numbers = numbers_of(k, skew, received=received, late=late, rejected=received - late)
    out.partials[served.spec.key] += Partial(starts[received > 0], numbers[received > 0])


def _by_message(judged: Judged, rows: Rows) -> Iterator[Rows]:
    """Split ``rows`` into those of each message."""
    origins = judged.parsed.origins[rows]
    changes = np.flatnonzero(origins[1:] != origins[:-1]) + 1
    for start, end in pairwise([0, *changes.tolist(), len(rows)]):
        yield rows[start:end]


def _only(judged: Judged, rows: Rows, data: bytes) -> bytes:
    """Return a message that holds only the reports at ``rows``, which all come from a message with this data."""
    parsed = judged.parsed
    if not parsed.batched:
        return data
    first, end = np.searchsorted(parsed.origins, [parsed.origins[rows[0]], parsed.origins[rows[0]] + 1])
    if len(rows) == end - first:
        return data
    return encode_batch(
        *parsed.served.spec.key, parsed.report_ids[rows], parsed.event_times[rows], parsed.payloads[rows]
    )


def _count_senders(key: CollectionKey, slots: Times, senders: Digests, out: Decoded) -> None:
    """Add reports with a known sender to the sender counts of their time slices."""
    known = np.flatnonzero(senders)
    if not len(known):
        return
    order = known[np.argsort(slots[known], kind="stable")]
    starts, firsts = np.unique(slots[order], return_index=True)
    of_slices = map(SenderCounts.of, np.split(senders[order], firsts[1:]))
    counts = dict(zip(starts.tolist(), of_slices, strict=True))
    out.partials[key] += Partial(starts, numbers_of(len(starts)), senders=counts)
