"""The settings of a job: what it may be told beside its specs, source, results and runner."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uldp.collector.hashing import DEFAULT_SHARDS
from uldp.collector.shared_specs import SharedSpecs
from uldp.pipelines.jobs.aggregate import JobAggregate
from uldp.pipelines.jobs.publishing import NOWHERE, Publishing
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import CollectionSpec


def _silent(line: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class JobSettings:
    """The settings of a job; the last ones are those of a stream."""

    #: Another directory or URL for late and rejected reports, ids that are kept, and cells of few reports.
    private: str | None = None
    sender_key: Path | None = None  # the file of the key of senders; without one, the key is drawn and kept
    registry_ids: Mapping[int, str] | None = None  # as in ``Aggregate``
    publishing: Publishing = NOWHERE  # where the job publishes what it finds
    shards: int | None = None  # as in ``Aggregate``, on a cluster alone; None for its default
    keep_ids: bool = False  # whether the ids of counted reports are kept
    say: Callable[[str], None] = _silent  # takes a line about what the job does

    watermark_delay_ms: int = 0  # for how long after a message another one may arrive that was published before it
    newest_only: bool = False  # as in ``WriteResults``
    simulated_clock: bool = False  # whether publish times come from a simulation, which a local stream says itself
    metrics_port: int | None = None  # the port of ``monitored``, of a local stream; None without metrics

    @property
    def decisive(self) -> dict[str, Any]:
        """The settings that are a part of the job's identity, as ``JobIdentity.of`` takes them."""
        shards = self.shards or DEFAULT_SHARDS
        return {"registry_ids": self.registry_ids, "sinks": self.publishing.sinks, "shards": shards}

    def aggregate(self, specs: Sequence[CollectionSpec] | SharedSpecs, *, here: bool = False) -> JobAggregate:
        """Return the transform that counts, without the keys of the job; one on this machine has one shard.

        RequestError if shards are set for one on this machine.
        """
        if here and self.shards is not None:
            raise RequestError("--shards divides ids among the workers of a cluster; leave it out on this machine")
        return JobAggregate(
            specs,
            shards=1 if here else self.shards or DEFAULT_SHARDS,
            registry_ids=self.registry_ids,
            simulated_clock=self.simulated_clock,
            keep_ids=self.keep_ids,
        )


#: Those of a job that is told nothing.
DEFAULTS = JobSettings()
