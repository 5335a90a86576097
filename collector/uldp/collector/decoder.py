"""Decode and validate messages, thousands at a time, and give a reason for each report that cannot be counted.

The decoder is pure: it takes messages and returns columns, late messages and rejected records. Each report ends in
exactly one of the three, so received = decoded + late + rejected holds for each call.

Each report that names a served collection and version is accounted in one time slice. This is the slice of its event
time; if the decoder refuses that time, or the state of that slice's windows is gone, it is the slice of the publish
time. So no device can open windows at will, and the accounting of a collection misses no report.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from itertools import chain
from typing import Any

import numpy as np

from uldp.collector.collections import ServedCollection, serve
from uldp.collector.columns import ReportColumns
from uldp.collector.parse import (
    ParsedReports,
    PayloadFault,
    Record,
    RejectError,
    fault_of_batch,
    fault_of_report,
    from_batches,
    from_reports,
)
from uldp.collector.partial import PartialCounts
from uldp.collector.signals import PartialSignals, SenderCounts, one_skew, sender_digest, signal_bits
from uldp.schemas.arrays import Digests, Times
from uldp.schemas.codec.batched import BatchViews
from uldp.schemas.codec.columnar import FastRows, Layout, decode_columns, report_schema
from uldp.schemas.collection import CollectionKey, CollectionSpec
from uldp.schemas.framing import (
    MalformedBodyError,
    NotSingleObjectError,
    TruncatedBodyError,
    UnknownSchemaError,
    report_store,
)
from uldp.schemas.reasons import Reason
from uldp.schemas.records import ATTEMPT, SENDER, Accounting, Message, Rejected

#: Pub/Sub's limit for a message. The decoder rejects a longer message without decoding it.
MAX_MESSAGE_BYTES = 10_000_000
#: How many bytes of a message that is too large its rejected record keeps.
KEPT_BYTES = 4096
_FRAMING_REASONS: dict[type[ValueError], Reason] = {
    NotSingleObjectError: Reason.NOT_AVRO,
    UnknownSchemaError: Reason.UNKNOWN_SCHEMA,
    TruncatedBodyError: Reason.TRUNCATED,
    MalformedBodyError: Reason.MALFORMED,
}


#: A time slice of a collection and version: (key, start).
SliceKey = tuple[CollectionKey, int]


@dataclass(slots=True)
class Decoded:
    """The outcome of decoding several messages.

    Attributes:
        received: Number of reports that arrived; a message that cannot be decoded counts as one report.
        columns: Reports that the next stages count unless they are duplicates.
        late: One message for each report that was published after its windows had closed.
        rejected: One record for each report that cannot be counted.
        partials: For each time slice, the accounting and clock skew of its late and rejected reports, and the counts of
            all senders.
    """

    received: int = 0
    columns: list[ReportColumns] = field(default_factory=list)
    late: list[Message] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    partials: dict[SliceKey, PartialCounts] = field(default_factory=lambda: defaultdict(PartialCounts))


class ReportDecoder:
    """Decodes and validates messages, thousands at a time.

    Args:
        specs: The served collections; the decoder rejects reports of other collections.
        judge_lateness: Whether a report that was published after its windows closed is late. In a bounded job no
            window has closed, and every report is counted.
    """

    def __init__(self, specs: Iterable[CollectionSpec], *, judge_lateness: bool) -> None:
        self._served = serve(specs)
        self._collections = {collection for collection, _ in self._served}
        self._judge_lateness = judge_lateness
        self._by_layout = list(self._served.values())
        schema = report_schema()
        self._layouts = [Layout.of(schema, *served.spec.key, served.bits_width) for served in self._by_layout]
        self._batches = BatchViews.of(self._served)
        self._store = report_store()
        self._software = metadata.version("uldp-stream")

    def decode(self, messages: Sequence[Message]) -> Decoded:
        """Decode ``messages``; no input raises, and each report ends in ``columns``, ``late`` or ``rejected``."""
        out = Decoded()
        found, rest = decode_columns([message.data for message in messages], self._layouts)
        singles: dict[tuple[CollectionKey, PayloadFault | None], list[Record]] = defaultdict(list)
        batches: dict[tuple[CollectionKey, PayloadFault | None], list[Record]] = defaultdict(list)
        for index in rest.tolist():
            try:
                key, name, record = self._decode_one(messages[index].data)
                served = self._served[key]
                if name == "uldp.Report":
                    singles[key, fault_of_report(served, record)].append((index, record))
                else:
                    batches[key, fault_of_batch(served, record)].append((index, record))
            except RejectError as error:
                self._reject(messages[index], error, out)
        # Lazily, so that the columns of a collection are still in the caches when they are validated.
        parsed = chain(
            (self._from_columns(fast) for fast in found),
            (from_reports(self._served[key], fault, records) for (key, fault), records in singles.items()),
            (from_batches(self._served[key], fault, records) for (key, fault), records in batches.items()),
        )
        published = np.array([message.publish_time for message in messages], dtype=np.int64)
        senders = self._senders(messages)
        for reports in parsed:
            if not len(reports.origins):  # the batches hold no reports
                continue
            out.received += len(reports.origins)
            self._validate(reports, published[reports.origins], messages, senders, out)
        return out

    def _from_columns(self, fast: FastRows) -> ParsedReports:
        served = self._by_layout[fast.layout]
        return ParsedReports(served, fast.rows, False, fast.report_ids, fast.event_times, fast.payloads)

    def _senders(self, messages: Sequence[Message]) -> Digests | None:
        """Return a digest of each message's sender key, 0 for no key; or None if no spec limits reports per sender."""
        if all(served.spec.limits.max_reports_per_sender is None for served in self._by_layout):
            return None
        keys = [message.attributes.get(SENDER) for message in messages]
        return np.array([0 if key is None else sender_digest(key) for key in keys], dtype=np.uint64)

    def _decode_one(self, data: bytes) -> tuple[CollectionKey, str, dict[str, Any]]:
        """Decode one message and return its collection and version, the name of its schema, and the record."""
        if len(data) > MAX_MESSAGE_BYTES:
            raise RejectError(Reason.TOO_LARGE, f"{len(data)} bytes, the limit is {MAX_MESSAGE_BYTES}")
        if (batch := self._batches.read(data)) is not None:
            key, columns = batch
            return key, "uldp.ReportBatch", columns
        try:
            name, record = self._store.decode(data)
        except tuple(_FRAMING_REASONS) as error:
            raise RejectError(_FRAMING_REASONS[type(error)], str(error)) from error
        key = record["collection"], record["version"]
        if key not in self._served:
            known = record["collection"] in self._collections
            reason = Reason.UNKNOWN_VERSION if known else Reason.UNKNOWN_COLLECTION
            raise RejectError(reason, f"{record['collection'][:64]!r} version {record['version']}")
        return key, name, record

    def _reject(self, message: Message, error: RejectError, out: Decoded) -> None:
        out.received += 1
        if error.reason is Reason.TOO_LARGE:
            message = message._replace(data=message.data[:KEPT_BYTES])
        out.rejected.append(self._rejected(message, error.reason, error.detail))
        if error.served is not None:
            published = np.array([message.publish_time], dtype=np.int64)
            start = int(error.served.slice_start(published)[0])
            out.partials[error.served.spec.key, start] += PartialCounts(accounting=_REJECTED)

    def _rejected(self, message: Message, reason: Reason, detail: str) -> Rejected:
        return Rejected(
            stage="decode",
            reason=reason,
            detail=detail,
            data=message.data,
            attributes=message.attributes,
            publish_time=message.publish_time,
            source=message.source,
            attempt=_attempt(message.attributes),
            software=self._software,
        )

    def _slots(self, served: ServedCollection, times: Times, published: Times) -> Times:
        """Return the start of the time slice in which each report is accounted."""
        slices = served.slice_start(times)
        named = served.admits(times, published) & (not served.spec.retired)
        if self._judge_lateness:
            named &= published < slices + served.amendable_for
        return np.where(named, slices, served.slice_start(published))

    def _validate(
        self,
        parsed: ParsedReports,
        published: Times,
        messages: Sequence[Message],
        senders: Digests | None,
        out: Decoded,
    ) -> None:
        """Check all reports of one collection at once and distribute them to the fields of ``out``."""
        served, times = parsed.served, parsed.event_times
        key, limits = served.spec.key, served.spec.limits
        good = served.admits(times, published)
        improbable = np.zeros_like(good)
        if parsed.fault is not None or served.spec.retired:
            good[:] = False
        else:
            possible, improbable = served.inspect(parsed.payloads)
            good &= possible
        slices = served.slice_start(times)
        late = good & (published >= slices + served.closes_after) if self._judge_lateness else np.zeros_like(good)
        counted = good & ~late
        signals = signal_bits(times, published, improbable)
        columns = ReportColumns(*key, parsed.report_ids, slices, parsed.payloads, signals)
        slots = slices if counted.all() else self._slots(served, times, published)
        if senders is not None and limits.max_reports_per_sender is not None:
            _count_senders(key, slots, senders[parsed.origins], out)
        if counted.all():
            out.columns.append(columns)
            return
        if counted.any():
            out.columns.append(columns.take(counted))
        # A loop suffices, because these rows are few and each needs its own record.
        for row in np.flatnonzero(~counted).tolist():
            message = messages[parsed.origins[row]]
            message = message._replace(data=parsed.message_data(row, message))
            if late[row]:
                out.late.append(message)
                outcome = _LATE
            else:
                reason, detail = parsed.reason(row, int(published[row]))
                out.rejected.append(self._rejected(message, reason, detail))
                outcome = _REJECTED
            out.partials[key, int(slots[row])] += PartialCounts(None, outcome, one_skew(int(signals[row])))


def _count_senders(key: CollectionKey, slots: Times, senders: Digests, out: Decoded) -> None:
    """Add reports with a known sender to the sender counts of their time slices."""
    known = np.flatnonzero(senders)
    if not len(known):
        return
    order = known[np.argsort(slots[known], kind="stable")]
    starts, firsts = np.unique(slots[order], return_index=True)
    for start, of_slice in zip(starts.tolist(), np.split(senders[order], firsts[1:]), strict=True):
        out.partials[key, start] += PartialCounts(signals=PartialSignals(senders=SenderCounts.of(of_slice)))


_LATE = Accounting(received=1, late=1)
_REJECTED = Accounting(received=1, rejected=1)


def _attempt(attributes: Mapping[str, str]) -> int:
    """Read the number of the attempt from a message's attributes; a publisher may have written any text there."""
    written = attributes.get(ATTEMPT, "1")
    return max(int(written), 1) if re.fullmatch("[0-9]{1,4}", written) else 1
