"""Thin Beam transforms: decode, deduplicate, count, window, estimate; ``io`` reads and writes.

Each module has as little logic as possible: first a public pure function, then a PTransform over it. Of our packages,
this one imports only ``uldp.schemas``, ``uldp.mechanisms`` and ``uldp.collector``.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uldp.transforms.aggregate import Aggregate
    from uldp.transforms.aggregated import Aggregated
    from uldp.transforms.estimate_rows import EstimateReports, EstimateRows
    from uldp.transforms.io.chunks import Chunk
    from uldp.transforms.io.endpoints import Endpoint, Following
    from uldp.transforms.io.json_rows import Keyed
    from uldp.transforms.io.kafka.source import ReadFromKafka
    from uldp.transforms.io.local.read_stream import ReadLocalStream
    from uldp.transforms.io.pubsub.source import ReadSubscription
    from uldp.transforms.io.read_archive import ReadArchive
    from uldp.transforms.io.results.write import WriteResults
    from uldp.transforms.io.row_sink import RowSink
    from uldp.transforms.parse import ParseMessages

__all__ = [
    "Aggregate",
    "Aggregated",
    "Chunk",
    "Endpoint",
    "EstimateReports",
    "EstimateRows",
    "Following",
    "Keyed",
    "ParseMessages",
    "ReadArchive",
    "ReadFromKafka",
    "ReadLocalStream",
    "ReadSubscription",
    "RowSink",
    "WriteResults",
]

_MODULE_OF = {
    "Aggregate": "aggregate",
    "Aggregated": "aggregated",
    "Chunk": "io.chunks",
    "Endpoint": "io.endpoints",
    "EstimateReports": "estimate_rows",
    "EstimateRows": "estimate_rows",
    "Following": "io.endpoints",
    "Keyed": "io.json_rows",
    "ParseMessages": "parse",
    "ReadArchive": "io.read_archive",
    "ReadFromKafka": "io.kafka.source",
    "ReadLocalStream": "io.local.read_stream",
    "ReadSubscription": "io.pubsub.source",
    "RowSink": "io.row_sink",
    "WriteResults": "io.results.write",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: Beam takes a second to import, and not every module here needs it."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
