"""What a job publishes beside its results: rows of estimates, and rejected reports, each as an Avro record."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.collector.shared_specs import SharedSpecs
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.lacking import Lacking
from uldp.pipelines.results.local_copy import here
from uldp.pipelines.results.text import number_of
from uldp.schemas.errors import EndpointError
from uldp.schemas.estimate import Estimate
from uldp.schemas.framing import encode_object
from uldp.schemas.rejected import Rejected
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.aggregated import Aggregated
from uldp.transforms.io.endpoints import Endpoint
from uldp.transforms.io.folders import COUNTS
from uldp.transforms.io.json_rows import Keyed
from uldp.transforms.io.row_sink import RowSink

#: What is compared with a place of rows, below the results.
_COMPARED = ("specs", COUNTS, "estimates")
_UNASKED = "nobody can ask which windows it has, so it gets those that this job publishes, and lost ones stay lost"


def keyed_rejected(rejected: Rejected) -> Iterator[Keyed]:
    """Yield each rejected message as ``rejected.avsc``, framed, under a digest of first place, reason and data.

    So a job that reads it again has the same key, whatever bundles and versions say. A broker limits a message's size,
    so no record holds several bodies.
    """
    for each in rejected.apart():
        nowhere = not each.place[1]
        time = each.publish_time if nowhere else 0  # nothing else tells such messages apart
        named = each.source, each.reason, b"".join(each.bodies).hex(), dict(each.attributes), time
        key = hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:32].encode()
        yield key, encode_object("rejected", each.to_avro())


@dataclass(frozen=True)
class Publishing:
    """Where a job publishes what it finds, beside its results."""

    estimates_to: Endpoint | None = None  # the topic, table or folder that takes estimates, if any
    rejected_to: Endpoint | None = None  # the topic that takes rejected reports, if any

    def check(self, *, here: bool) -> None:
        """Ask whether both are there and take what is published; EndpointError if not, or only ``here`` has one."""
        if self.estimates_to is not None:
            if self.estimates_to.only_here and not here:
                raise EndpointError(
                    f"{self.estimates_to}: only this machine has it, and the job may run on others;"
                    " write postgresql://USER@HOST/DATABASE or name a topic"
                )
            self.estimates_to.check_estimates()
        if self.rejected_to is not None:
            self.rejected_to.check("WRITE")

    @property
    def sinks(self) -> tuple[str, ...]:
        """The place of rows that an audit of the job asks, if there is one, as ``RowSink.recorded``."""
        return (self.estimates_to.recorded,) if isinstance(self.estimates_to, RowSink) else ()

    def complete(self, results: str, say: Callable[[str], None]) -> None:
        """Write, and say, newest estimates of results, here or of a URL, that the place of rows lacks or has older."""
        if isinstance(self.estimates_to, RowSink):
            with here(results, _COMPARED) as folder:
                _complete(self.estimates_to, folder, say)
        elif self.estimates_to is not None:
            say(f"{self.estimates_to}: {_UNASKED}")

    def publish(self, aggregated: Aggregated, specs: Iterable[CollectionSpec], *, native: bool) -> None:
        """Add the steps that publish. ``specs`` are those of the job; ``native`` is as in ``Endpoint.publish``."""
        if self.estimates_to is not None:
            _ = aggregated.estimates | "PublishEstimates" >> PublishEstimates(self.estimates_to, specs, native)
        if self.rejected_to is not None:
            _ = aggregated.rejected | "PublishRejected" >> PublishRejected(self.rejected_to, native)


def _complete(sink: RowSink, results: Path, say: Callable[[str], None]) -> None:
    damaged: list[ResultsError] = []
    try:
        lacking = Lacking.of(sink, ResultsFolder(results, damaged.append))
    except EndpointError as error:
        say(f"{error}; {_UNASKED}")
        return
    if lacking is None:
        say(f"{sink}: {_UNASKED}")
        return
    if lacking.strange:
        say(
            f"{sink}: has {number_of(lacking.strange, 'window')} that the results lack, of other results or of lost"
            " ones; if two results have a window, the pane that has received more is valid"
        )
    if lacking.windows:
        say(f"{sink}: lacks {number_of(len(lacking.windows), 'window')}; writing them again")
        sink.write_all(lacking)
    if damaged:
        more = f" (and {len(damaged) - 1:,} more)" if len(damaged) > 1 else ""
        say(f"{damaged[0]}{more}; {sink} is compared with all other windows")


#: A job with these publishes nothing.
NOWHERE = Publishing()


@dataclass
class PublishEstimates(beam.PTransform[PCollection[Estimate], None]):
    """Publish the rows of estimates; a bundle that is tried again has the same rows under the same keys."""

    to: Endpoint  # the topic, table or folder that takes them
    specs: Iterable[CollectionSpec]  # the specs of the job
    native: bool = False  # whether the runner's own connector is used where there is one

    def expand(self, estimates: PCollection[Estimate]) -> None:
        """Let the endpoint do it."""
        self.to.publish_estimates(estimates, SharedSpecs.of(self.specs), native=self.native)


@dataclass
class PublishRejected(beam.PTransform[PCollection[Rejected], None]):
    """Publish rejected reports; as ``PublishEstimates``."""

    to: Endpoint  # the topic that takes them
    native: bool = False  # as in ``PublishEstimates``

    def expand(self, rejected: PCollection[Rejected]) -> None:
        """Key the records; the endpoint does the rest."""
        keyed = rejected | "KeyRecords" >> beam.FlatMap(keyed_rejected).with_output_types(Keyed)
        self.to.publish(keyed, native=self.native)
