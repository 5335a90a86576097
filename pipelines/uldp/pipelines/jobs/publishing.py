"""Results as messages of a broker: each estimate as JSON, each rejected report as an Avro record with its reason."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.pipelines.results.read import to_json
from uldp.schemas.framing import encode_object
from uldp.schemas.records import Estimate, Rejected, iso
from uldp.transforms.io.endpoints import Endpoint, Keyed


def keyed_estimate(estimate: Estimate) -> Keyed:
    """Return an estimate as a line of ``uldp show --json``. All panes of a window by one estimator have one key."""
    support = estimate.support
    window = f"{iso(support.window_start)}/{iso(support.window_end)}"
    key = f"{support.collection}/{support.version}/{window}/{estimate.estimator}"
    return key.encode(), json.dumps(to_json(estimate)).encode()


def keyed_rejected(rejected: Rejected) -> Keyed:
    """Return a rejected report as ``rejected.avsc``, framed, under the digest of what it holds."""
    data = encode_object("rejected", rejected.to_avro())
    return hashlib.sha256(data).hexdigest()[:32].encode(), data


@dataclass
class PublishResults(beam.PTransform[PCollection[Any], None]):
    """Publish records of one kind. A bundle that is tried again publishes the same keys and bodies.

    Attributes:
        topic: The endpoint that takes them.
        keyed: Returns the key and the body of a record.
        native: Whether the runner's own connector is used where there is one.
    """

    topic: Endpoint
    keyed: Callable[[Any], Keyed]
    native: bool = False

    def expand(self, records: PCollection[Any]) -> None:
        """Key the records; the endpoint does the rest."""
        self.topic.publish(records | "KeyRecords" >> beam.Map(self.keyed).with_output_types(Keyed), native=self.native)
