"""The registry of counters. Only counters, because only counters reach Flink's metrics."""

from typing import Literal

from apache_beam.metrics import Metrics
from apache_beam.metrics.metricbase import Counter

NAMESPACE = "uldp"

CounterName = Literal[
    # Reports that arrived, whatever became of them. A message that cannot be decoded is one report.
    "received",
    # Reports that are in the counts.
    "counted",
    # Reports whose id had been seen. High: a client or a broker resends; the estimates are not affected.
    "duplicate",
    # Reports that came after their window had closed. High: raise allowed_lateness, then backfill the late output.
    "late",
    # Reports that cannot be counted. High: read the rejected output; each record has its reason.
    "rejected",
]


def counter(name: CounterName) -> Counter:
    """Return the counter of that name."""
    return Metrics.counter(NAMESPACE, name)
