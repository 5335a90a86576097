"""Results as messages of a broker: each estimate as JSON, each rejected report as an Avro record with its reason."""

import hashlib
import json
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.pipelines.results.json_lines import to_json
from uldp.schemas.estimate import Estimate
from uldp.schemas.framing import encode_object
from uldp.schemas.records import Rejected, iso
from uldp.transforms.io.endpoints import Endpoint, Keyed


def keyed_estimate(estimate: Estimate) -> Keyed:
    """Return an estimate as a line of ``uldp show --json``, without what the statistic and the spec hold.

    So ``counts`` is null, and so are the ``keys`` of tables over the values of the domain.
    All panes of a window by one estimator have one key.
    """
    window = f"{iso(estimate.window_start)}/{iso(estimate.window_end)}"
    key = f"{estimate.collection}/{estimate.version}/{window}/{estimate.estimator}"
    return key.encode(), json.dumps(to_json(estimate, None, None)).encode()


def keyed_rejected(rejected: Rejected) -> Keyed:
    """Return a rejected report as ``rejected.avsc``, framed, under the digest of what it holds."""
    data = encode_object("rejected", rejected.to_avro())
    return hashlib.sha256(data).hexdigest()[:32].encode(), data


@dataclass
class PublishEstimates(beam.PTransform[PCollection[Estimate], None]):
    """Publish estimates. A bundle that is tried again publishes the same keys and bodies, or rows.

    Attributes:
        to: The topic or table that takes them.
        native: Whether the runner's own connector is used where there is one.
    """

    to: Endpoint
    native: bool = False

    def expand(self, estimates: PCollection[Estimate]) -> None:
        """Let the endpoint key them, unless it has keys of its own."""
        self.to.publish_estimates(estimates, keyed_estimate, native=self.native)


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
        keyed = rejected | "KeyRecords" >> beam.Map(keyed_rejected).with_output_types(Keyed)
        self.to.publish(keyed, native=self.native)
