from .aggregate import Aggregate
from .aggregated import Aggregated
from .estimate_rows import EstimateReports, EstimateRows
from .io.chunks import Chunk
from .io.endpoints import Endpoint, Following
from .io.json_rows import Keyed
from .io.kafka.source import ReadFromKafka
from .io.local.read_stream import ReadLocalStream
from .io.pubsub.source import ReadSubscription
from .io.read_archive import ReadArchive
from .io.results.write import WriteResults
from .io.row_sink import RowSink
from .parse import ParseMessages

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
