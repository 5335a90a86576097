from .aggregate import Aggregate
from .aggregated import Aggregated
from .clock import clock_of_test_stream
from .estimate_rows import EstimateReports, EstimateRows
from .io.chunks import Chunk
from .io.endpoints import Endpoint, Following
from .io.json_rows import Keyed
from .io.kafka.source import KafkaSource, ReadFromKafka
from .io.kafka.topic import KafkaTopic
from .io.pubsub.source import PubSubSource, ReadSubscription
from .io.pubsub.subscription import Subscription
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
    "KafkaSource",
    "KafkaTopic",
    "Keyed",
    "ParseMessages",
    "PubSubSource",
    "ReadArchive",
    "ReadFromKafka",
    "ReadSubscription",
    "RowSink",
    "Subscription",
    "WriteResults",
    "clock_of_test_stream",
]
