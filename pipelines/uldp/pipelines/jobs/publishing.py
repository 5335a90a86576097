"""What a job publishes beside its results: rows of estimates, and rejected reports, each as an Avro record."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.errors import EndpointError
from uldp.schemas.estimate import Estimate
from uldp.schemas.framing import encode_object
from uldp.schemas.rejected import Rejected
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.aggregated import Aggregated
from uldp.transforms.io.endpoints import Endpoint
from uldp.transforms.io.json_rows import Keyed


def keyed_rejected(rejected: Rejected) -> Iterator[Keyed]:
    """Yield each rejected message as ``rejected.avsc``, framed, under a digest of first place, reason and data.

    So a job that reads the message again has the same key for it, however its bundles are cut and whatever its version
    says in the other fields. A bundle that is cut otherwise may join more or fewer messages of equal data under the key
    of the first. A broker limits the size of a message, so no record holds several bodies.
    """
    for each in rejected.apart():
        nowhere = not each.place[1]
        time = each.publish_time if nowhere else 0  # nothing else tells such messages apart
        named = each.source, each.reason, b"".join(each.bodies).hex(), dict(each.attributes), time
        key = hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:32].encode()
        yield key, encode_object("rejected", each.to_avro())


@dataclass(frozen=True)
class Publishing:
    """Where a job publishes what it finds, beside its results.

    Attributes:
        estimates_to: The topic, table or folder that takes estimates, if any.
        rejected_to: The topic that takes rejected reports, if any.
    """

    estimates_to: Endpoint | None = None
    rejected_to: Endpoint | None = None

    def check(self, *, here: bool) -> None:
        """Ask whether both are there and take what is published; see ``Endpoint.check``.

        Args:
            here: Whether the job runs on this machine alone.

        Raises:
            EndpointError: if only this machine has one of them, and the job may run on others.
        """
        if self.estimates_to is not None:
            if self.estimates_to.only_here and not here:
                raise EndpointError(
                    f"{self.estimates_to}: only this machine has it, and the job may run on others;"
                    " write postgresql://USER@HOST/DATABASE or name a topic"
                )
            self.estimates_to.check_estimates()
        if self.rejected_to is not None:
            self.rejected_to.check("WRITE")

    def publish(self, aggregated: Aggregated, specs: Iterable[CollectionSpec], *, native: bool) -> None:
        """Add the steps that publish. ``specs`` are those of the job; ``native`` is as in ``Endpoint.publish``."""
        if self.estimates_to is not None:
            _ = aggregated.estimates | "PublishEstimates" >> PublishEstimates(self.estimates_to, specs, native)
        if self.rejected_to is not None:
            _ = aggregated.rejected | "PublishRejected" >> PublishRejected(self.rejected_to, native)


#: A job with these publishes nothing.
NOWHERE = Publishing()


@dataclass
class PublishEstimates(beam.PTransform[PCollection[Estimate], None]):
    """Publish the rows of estimates. A bundle that is tried again publishes the same rows under the same keys.

    Attributes:
        to: The topic, table or folder that takes them.
        specs: The specs of the job.
        native: Whether the runner's own connector is used where there is one.
    """

    to: Endpoint
    specs: Iterable[CollectionSpec]
    native: bool = False

    def expand(self, estimates: PCollection[Estimate]) -> None:
        """Let the endpoint do it."""
        self.to.publish_estimates(estimates, SharedSpecs.of(self.specs), native=self.native)


@dataclass
class PublishRejected(beam.PTransform[PCollection[Rejected], None]):
    """Publish rejected reports; as ``PublishEstimates``.

    Attributes:
        to: The topic that takes them.
        native: As in ``PublishEstimates``.
    """

    to: Endpoint
    native: bool = False

    def expand(self, rejected: PCollection[Rejected]) -> None:
        """Key the records; the endpoint does the rest."""
        keyed = rejected | "KeyRecords" >> beam.FlatMap(keyed_rejected).with_output_types(Keyed)
        self.to.publish(keyed, native=self.native)
