"""What this project uses beyond Beam's documented interface; ``io.local.runner_internals`` has what local jobs use.

A new version of Beam may change these names without notice, so look here first if a test fails with it. Beside these
imports, ``uldp.pipelines.jobs.local`` depends on how two of Beam's local runners behave, and the program
``uldp.pipelines.jobs.pool`` runs Beam's worker pool.

- ``WindowedValue``: steps give elements their time when a bundle ends. Older than all versions that are supported.
- ``Timestamp``, ``Duration``, ``MIN_TIMESTAMP``, ``MAX_TIMESTAMP``: Beam's times, in microseconds. As old.
- ``Given``: the type of what Beam gives to a step by a parameter's default, as the time of an element. The check of
  ``--runtime_type_check`` reads annotations, and cannot use ``typing.Any``. As old.
- ``typed``: declares the type of a tagged output, and so its coder. If the step had hints of its outputs, that check
  would hold the elements of all tags against the type of the main output. As old.
- ``Windowing``: the windows of a collection, which ``windows.ParDo`` declares; it also overrides the private method
  by which ``--performance_runtime_type_check`` adds types to a step. As old.
- ``is_consistent_with``: whether elements of one type can be of another, as far as is known. As old.
- ``no_annotations``: keeps Beam from reading the return type of ``expand``, which names several outputs. As old.
- ``Counter``: the type of a counter. As old.
- ``RowTypeConstraint``: the schema of rows whose fields are a table of this project, and no class. As old.
- ``TestStreamPayload``, ``service_api``: the events that the local stream sends to the ``BundleBasedDirectRunner``, and
  the service that sends them. As old.
- ``AbstractDoFnWrapper``: the steps that ``--runtime_type_check`` puts around others, which
  ``uldp.transforms.io.local.lighter_runner`` tells from others. As old.
- ``LOCAL_EXECUTOR_LOG``, ``RETRIED``: the log of the ``BundleBasedDirectRunner``, and the beginning of the error that
  it logs if it tries a bundle again. It logs any other error when it gives up. As old.
- ``CheckpointMark``, ``UnboundedReader``, ``UnboundedSource``: the experimental sources in Python that read Kafka and
  Pub/Sub on other runners than Dataflow, and ``ReadUnboundedSourceFn``, the DoFn that reads each source that it is
  given. Beam's own transform makes one element of all readers. Since Beam 2.76.
"""

from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.metrics.metricbase import Counter
from apache_beam.portability.api import beam_interactive_api_pb2_grpc as service_api
from apache_beam.portability.api.org.apache.beam.model.pipeline.v1.beam_runner_api_pb2 import TestStreamPayload
from apache_beam.pvalue import PCollection
from apache_beam.transforms.core import Windowing
from apache_beam.typehints.decorators import no_annotations
from apache_beam.typehints.native_type_compatibility import convert_to_beam_type
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.typehints.typecheck import AbstractDoFnWrapper
from apache_beam.typehints.typehints import is_consistent_with
from apache_beam.utils.retry import with_exponential_backoff
from apache_beam.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration, Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from uldp.schemas.errors import RequestError

try:
    from apache_beam.io.unbounded_source import CheckpointMark, UnboundedReader, UnboundedSource
    from apache_beam.io.unbounded_source import _ReadFromUnboundedSourceDoFn as ReadUnboundedSourceFn
except ImportError:  # Beam < 2.76

    class CheckpointMark:  # type: ignore[no-redef]
        """A base class, so that the modules of connectors can be imported."""

    class UnboundedReader:  # type: ignore[no-redef]
        """Likewise."""

        def close(self) -> None:
            """Do nothing."""

    class UnboundedSource:  # type: ignore[no-redef]
        """Likewise."""

    class ReadUnboundedSourceFn(beam.DoFn):  # type: ignore[no-redef]
        """Refuses to read."""

        def __init__(self, *settings: Any) -> None:
            raise RequestError(
                f"Beam {beam.__version__} cannot read this stream with a source in Python; Beam 2.76 can:"
                " pip install 'apache-beam>=2.76'"
            )


if TYPE_CHECKING:
    Given = Any
else:
    Given = object

LOCAL_EXECUTOR_LOG = "apache_beam.runners.direct.executor"
RETRIED = "Exception at bundle"


def typed(collection: PCollection[Any], element_type: Any) -> PCollection[Any]:
    """Declare the type of the elements of a tagged output, and so their coder."""
    collection.element_type = convert_to_beam_type(element_type)
    return collection
