"""Batches of reports that are decoded together, and what becomes of each report: counted, late, or rejected.

A batch of a hostile sender may hold a hundred thousand reports that cannot be counted. So the reports of one message
that share a verdict stay together, as one batch in one record: the output is no larger than a small multiple of the
input, and a rejected report costs about as much time as a counted one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from uldp.collector.columns import ReportColumns
from uldp.collector.counting import accounted
from uldp.collector.judge import COUNTED, LATE, REASONS, Judged, Uncounted
from uldp.collector.origins import Senders
from uldp.collector.partial import Partial, numbers_of
from uldp.collector.plain_decoder import Unparsed
from uldp.collector.rejects import rejected_records
from uldp.schemas.arrays import Rows
from uldp.schemas.codec.encode import encode_batch
from uldp.schemas.codec.packed import PackedMessages
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message
from uldp.schemas.rejected import Rejected
from uldp.schemas.specs.collection import CollectionKey

#: How many bytes of a message that is too large its rejected record keeps.
STORED_BYTES = 4096


@dataclass(frozen=True, slots=True, eq=False)
class JudgedBatch:
    """Reports that were judged together."""

    judged: Judged
    messages: PackedMessages  # the messages that ``origins`` of the reports are indices of
    senders: Senders | None  # the senders of these messages; None if no spec limits the reports of one

    @property
    def received(self) -> int:
        """Number of reports."""
        return len(self.judged.verdicts)

    def counted(self) -> Iterator[ReportColumns]:
        """Yield the reports of each collection that the next stages count unless they are duplicates."""
        judged, parsed = self.judged, self.judged.parsed
        for served, rows in parsed.spans():
            kept = judged.verdicts[rows] == COUNTED if judged.uncounted else None
            if kept is not None and not kept.any():
                continue
            columns = ReportColumns(
                *served.spec.key,
                parsed.report_ids[rows],
                judged.slices[rows],
                parsed.payloads[rows],
                judged.signals[rows],
            )
            if self.senders is not None and served.spec.limits.cap_senders:
                origins = self.senders.origins.of_reports(parsed.origins[rows], parsed.event_times[rows])
                columns = replace(columns, origins=origins)
            yield columns if kept is None or kept.all() else columns.take(kept)

    def late(self) -> Iterator[tuple[Message, int]]:
        """Yield messages that hold the late reports alone, and the number of these in each."""
        for each in self.judged.uncounted:
            if each.verdict == LATE:
                for reports, origins, _, bodies in self._messages(each):
                    for origin, data in zip(origins.tolist(), bodies, strict=True):
                        yield self.messages[origin]._replace(data=data), reports

    def rejected(self) -> Iterator[Rejected]:
        """Yield records that hold the reports that cannot be counted."""
        for each in self.judged.uncounted:
            if each.verdict != LATE:
                for reports, origins, rows, bodies in self._messages(each):
                    reason, detail = REASONS[each.verdict], self.judged.detail
                    yield from rejected_records(reason, self.messages, origins, bodies, detail, rows, reports=reports)

    def account(self) -> Iterator[tuple[CollectionKey, Partial]]:
        """Yield the accounting of late and rejected reports and the counts of all senders, for each collection."""
        judged = self.judged
        if self.senders is not None:
            for served, rows in judged.parsed.spans():
                if served.spec.limits.max_reports_per_sender is not None:
                    counts = self.senders.counts(judged.parsed.origins[rows], judged.slots[rows])
                    if len(counts):
                        yield served.spec.key, counts
        for served, _, verdict, at in judged.uncounted:
            outcome = "late" if verdict == LATE else "rejected"
            yield served.spec.key, accounted(served, judged.slots[at], judged.signals[at], outcome)

    def _messages(self, of: Uncounted) -> Iterator[tuple[int, Rows, Rows, list[bytes]]]:
        """Yield numbers of reports, and of each message its index, first row and data, of uncounted ones."""
        parsed, bodies = self.judged.parsed, self.messages.bodies
        origins = parsed.origins[of.rows]
        if not parsed.batched:
            yield 1, origins, of.rows, bodies.at(origins)
            return
        changes = np.flatnonzero(origins[1:] != origins[:-1]) + 1
        for start, end in pairwise([0, *changes.tolist(), len(origins)]):
            origin, rows = int(origins[start]), of.rows[start:end]
            data = bodies[origin]
            first, last = np.searchsorted(parsed.origins[of.span], [origin, origin + 1])
            if len(rows) < last - first:
                ids, times, payloads = parsed.report_ids[rows], parsed.event_times[rows], parsed.payloads[rows]
                data = encode_batch(*of.served.spec.key, ids, times, payloads)
            yield len(rows), origins[start : start + 1], rows[:1], [data]


@dataclass(frozen=True, slots=True, eq=False)
class RefusedBatch:
    """Messages that are rejected as a whole for one reason."""

    refused: Unparsed
    messages: PackedMessages  # the messages that ``origins`` of these are indices of
    detail: Callable[[int], str]  # returns what is wrong with the message of an index

    @property
    def received(self) -> int:
        """Number of reports."""
        return self.refused.reports * len(self.refused.origins)

    def counted(self) -> tuple[()]:
        """Return no reports."""
        return ()

    def late(self) -> tuple[()]:
        """Return no messages."""
        return ()

    def rejected(self) -> Iterator[Rejected]:
        """Yield records that hold the messages, and of one that is too large its beginning."""
        reason, origins = self.refused.reason, self.refused.origins
        data = self.messages.bodies.at(origins)
        if reason is Reason.TOO_LARGE:
            data = [body[:STORED_BYTES] for body in data]
        return rejected_records(
            reason, self.messages, origins, data, self.detail, origins, reports=self.refused.reports
        )

    def account(self) -> Iterator[tuple[CollectionKey, Partial]]:
        """Yield the accounting of the messages that name a collection."""
        served = self.refused.served
        if served is not None:
            slots = served.slice_start(self.messages.publish_times[self.refused.origins])
            starts, n = np.unique(slots, return_counts=True)
            yield served.spec.key, Partial(starts, numbers_of(len(starts), received=n, rejected=n))
