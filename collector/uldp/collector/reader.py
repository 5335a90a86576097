"""Decode and validate messages, thousands at a time, and give a reason for each report that cannot be counted.

The decoder is pure: it takes messages and returns columns, late messages and rejected records. Each report ends in
exactly one of the three, so received = decoded + late + rejected holds for each call.

Each report that names a served collection and version is accounted in one time slice, see ``Judged.slots``, so that
the accounting of a collection misses no report.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from uldp.collector.batch import JudgedBatch, RefusedBatch
from uldp.collector.collections import YEAR_9000
from uldp.collector.columns import ReportColumns
from uldp.collector.judge import judge, unit_of_time
from uldp.collector.origins import Senders
from uldp.collector.parse import Openings
from uldp.collector.partial import Partial
from uldp.collector.plain_decoder import Unparsed
from uldp.collector.shared_specs import SharedSpecs
from uldp.collector.signals import checked_sender_key
from uldp.schemas.codec.packed import PackedMessages
from uldp.schemas.codec.registry import RegistryIds
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message
from uldp.schemas.rejected import Rejected, joined_rejected
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec


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
        rejected_reports: Number of these reports.
        partials: For each collection, the accounting and clock skew of its late and rejected reports, and the counts of
            all senders, by the start of their time slice.
    """

    received: int = 0
    columns: list[ReportColumns] = field(default_factory=list)
    late: list[Message] = field(default_factory=list)
    late_reports: int = 0
    rejected: list[Rejected] = field(default_factory=list)
    rejected_reports: int = 0
    partials: dict[CollectionKey, Partial] = field(default_factory=lambda: defaultdict(Partial))

    def add(self, batch: JudgedBatch | RefusedBatch) -> None:
        """Add what becomes of the reports of a batch."""
        self.received += batch.received
        self.columns += batch.counted()
        for message, reports in batch.late():
            self.late.append(message)
            self.late_reports += reports
        for record in batch.rejected():
            self.rejected.append(record)
            self.rejected_reports += record.reports
        for key, part in batch.account():
            self.partials[key] += part


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
        self._openings = Openings(specs)
        self._judge_lateness = judge_lateness
        self._sender_key = checked_sender_key(specs, sender_key)
        self._registry = RegistryIds(registry_ids or {})

    def decode(self, messages: Sequence[Message]) -> Decoded:
        """Decode ``messages``; no input raises, and each report ends in ``columns``, ``late`` or ``rejected``."""
        out = Decoded()
        packed = PackedMessages.of(messages)
        packed = replace(packed, bodies=self._registry.reframed(packed.bodies))
        dated = (packed.publish_times >= 0) & (packed.publish_times < YEAR_9000)
        if not dated.all():
            undated = Unparsed(np.flatnonzero(~dated), Reason.INVALID_TIME)
            out.add(RefusedBatch(undated, packed, partial(_time_of, packed)))
            packed = packed.take(np.flatnonzero(dated))
        if len(packed):
            self._specs.settle(int(packed.publish_times.max()))
        openings = self._openings
        if openings.edition != self._specs.edition:
            self._openings = openings = Openings(self._specs)  # threads may each find them anew
        for part, parser in openings.split(packed):
            senders = None if self._sender_key is None else Senders.of(part, self._sender_key)
            parsed, unparsed = parser.parse(part.bodies)
            for each in unparsed:
                out.add(RefusedBatch(each, part, partial(parser.detail, part.bodies)))
            for reports in parsed:
                published = part.publish_times[reports.origins]
                judged = judge(reports, published, judge_lateness=self._judge_lateness)
                out.add(JudgedBatch(judged, part, senders))
        out.rejected = joined_rejected(out.rejected)
        return out


def _time_of(messages: PackedMessages, origin: int) -> str:
    """Return what is wrong with a message whose publish time is none."""
    time = int(messages.publish_times[origin])
    return f"publish time {time}{unit_of_time(time)}"
