"""The whole aggregator as one transform: encoded reports in; estimates, counts, late and rejected reports out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.collector.columns import MixedColumns
from uldp.collector.hashing import DEFAULT_SHARDS, key_of
from uldp.collector.shared_specs import SharedSpecs, unknown_collection
from uldp.schemas.codec.registry import RegistryIds
from uldp.schemas.errors import RequestError
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.specs.window import WindowSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.aggregated import Aggregated
from uldp.transforms.count import CollectSlices, CountSupport, KeyedSpan, SumFixedWindows
from uldp.transforms.decode import DecodeReports
from uldp.transforms.deduplicate import DeduplicateReports
from uldp.transforms.estimate import EstimateDistributions
from uldp.transforms.internals import is_consistent_with, no_annotations
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.limit_senders import LimitSenders
from uldp.transforms.panes import FirePanes
from uldp.transforms.parse import NOT_MESSAGES
from uldp.transforms.seal import SealCounts
from uldp.transforms.slide import SumSlidingWindows
from uldp.transforms.windows import window_label


@dataclass
class Aggregate(beam.PTransform[PCollection[Message | Chunk], Aggregated]):
    """Aggregate obfuscated reports into estimates of the distribution of true values.

    The input is messages, or chunks of them. Its watermark must follow the messages' ``publish_time``: a window fires
    on time when all messages published before its end have been read. Devices' clocks decide the window of a report,
    but never the watermark.

    No message may have a ``publish_time`` before the watermark that the source had announced when it gave the message.
    The sources of this package keep that (see ``uldp.transforms.io.publish_times``), except ``ReadSubscription`` if it
    is ``native``: there the promise is the runner's. If a message breaks it by up to a day, its reports are counted in
    windows that have fired, and a copy may be counted again. If by more, the reports come in panes of their own, whose
    revisions begin at 0 again. Bounded input need not keep it.

    Attributes:
        specs: The collections to serve.
        deduplicate: Whether to count a report id once. Set it to false only if the source cannot repeat a report.
        shards: The number of parts of all ids for deduplication, and so its parallelism. Each part is one key of state,
            so a job of one worker is fastest with one. In a stream, the windows of collections are as many parts.
        shard_key: A secret integer of up to 128 bits, so that devices cannot choose ids that all fall into one shard.
            Draw it once with ``secrets.randbits(128)``, and keep it with the job: the state of the shards holds ids, so
            a job that resumes with another key counts copies of earlier reports again. The default protects nothing.
        sender_key: A secret of 32 bytes or more, with which the job digests sender keys for its results; see
            ``uldp.collector.signals.sender_digest``. Needed if a spec sets ``limits.max_reports_per_sender``.
        registry_ids: What the ids of a schema registry mean, as ``{7: "report", 8: "report_batch"}``, so that messages
            in its framing count. Those with other ids are rejected.
    """

    specs: Sequence[CollectionSpec] | SharedSpecs
    deduplicate: bool = True
    shards: int = DEFAULT_SHARDS
    shard_key: int = field(default=0, repr=False)
    sender_key: bytes | None = field(default=None, repr=False)
    registry_ids: Mapping[int, str] | None = None

    # What only the jobs of the command line set; see ``uldp.pipelines.jobs.aggregate``.
    _simulated_clock = False
    _freeze_heap = False
    _keep_ids = False

    def __post_init__(self) -> None:
        self._shared = SharedSpecs.of(self.specs)
        self.specs = self._shared if isinstance(self.specs, SharedSpecs) else tuple(self._shared)
        if not isinstance(self.shards, int) or self.shards < 1:
            raise RequestError(f"shards must be a whole number of 1 or more, got {self.shards!r}")
        key_of(self.shard_key)
        RegistryIds(self.registry_ids or {})  # refuse them before a worker does

    @no_annotations  # type: ignore[untyped-decorator]  # Beam warns about named outputs
    def expand(self, messages: PCollection[Message | Chunk]) -> Aggregated:
        """Decode, deduplicate, count, window, estimate; TypeError if the input is not of messages."""
        # None is an unknown type: Beam infers none under --no_pipeline_type_check.
        if messages.element_type is not None and not is_consistent_with(messages.element_type, Message | Chunk):
            raise TypeError(NOT_MESSAGES.format(getattr(messages.element_type, "__name__", messages.element_type)))
        decoded = messages | "Decode" >> DecodeReports(
            self._shared,
            self.shards if self.deduplicate else None,
            self._freeze_heap,
            self.shard_key,
            self.sender_key,
            self.registry_ids,
        )
        accounting: list[PCollection[Any]] = [decoded.accounting]
        if self.deduplicate:
            deduplicated = decoded.columns | "Deduplicate" >> DeduplicateReports(self._shared)
            accounting.append(deduplicated.accounting)
            columns = deduplicated.columns
        else:
            columns = decoded.columns | "DropShard" >> beam.Values().with_output_types(MixedColumns)
        rejected = decoded.rejected
        if any(spec.limits.cap_senders for spec in self.specs):
            limited = columns | "LimitSenders" >> LimitSenders(self._shared, self.shards)
            accounting.append(limited.accounting)
            columns, rejected = limited.columns, (rejected, limited.rejected) | "AllRejected" >> beam.Flatten()
        counted = columns | "Count" >> CountSupport(self._shared, self.shards, self.deduplicate)
        accounted = accounting | "Accounting" >> beam.Flatten()
        collected = accounted | "CollectAccounting" >> CollectSlices(self._shared, self.shards)
        spans = (counted, collected) | "WithAccounting" >> beam.Flatten()
        windows = (
            CountWindows(self._shared)
            if counted.is_bounded
            else FirePanes(self._shared, simulated_clock=self._simulated_clock)
        )
        counts = spans | "CountWindows" >> windows
        estimates = counts | "Estimate" >> EstimateDistributions(self._shared)
        results = Aggregated(estimates, counts, decoded.late, rejected, decoded.missing)
        return results._replace(kept=(columns,)) if self._keep_ids else results


@dataclass
class CountWindows(beam.PTransform[PCollection[KeyedSpan], PCollection[Statistic]]):
    """Sum spans of a bounded job in the windows of their spec, and seal the pane of each."""

    specs: Iterable[CollectionSpec]

    def expand(self, spans: PCollection[KeyedSpan]) -> PCollection[Statistic]:
        """Make a branch for each policy, named after it, so that a new collection leaves other branches unchanged."""
        policies: dict[str, WindowSpec] = {window_label(spec.window): spec.window for spec in self.specs}
        labels = {spec.key: window_label(spec.window) for spec in self.specs}
        sealed = []
        for label, window in sorted(policies.items()):
            kept = spans | f"Keep{label}" >> beam.Filter(_has_policy, labels, label).with_output_types(KeyedSpan)
            sums = (
                kept | f"Slide{label}" >> SumSlidingWindows(window, self.specs)
                if window.period is not None
                else kept | f"Sum{label}" >> SumFixedWindows(window)
            )
            sealed.append(sums | f"Seal{label}" >> SealCounts(self.specs))
        counts: PCollection[Statistic] = sealed | "AllPolicies" >> beam.Flatten()
        return counts


def _has_policy(element: KeyedSpan, labels: Mapping[CollectionKey, str], label: str) -> bool:
    """Return whether a span is of collections with a policy."""
    (key, _), _ = element
    if key not in labels:
        raise unknown_collection(key)
    return labels[key] == label
