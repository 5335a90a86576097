"""The registry of counters. Only counters, because only counters reach Flink's metrics.

They are for watching. On Flink they begin at 0 again with each attempt of a task, which counts again what it reads
again; the exact numbers of a window are its accounting.
"""

from typing import Literal

from apache_beam.metrics import Metrics
from apache_beam.metrics.metricbase import Counter

NAMESPACE = "uldp"

CounterName = Literal[
    # Reports that arrived, whatever became of them. A message that cannot be decoded is one report.
    "received",
    # Reports that are in the counts. Lower than received: see which of the other fates they met.
    "counted",
    # Reports whose id had been seen. High: a client or a broker resends; the estimates are not affected.
    "duplicate",
    # Reports that came after their window had closed. High: raise allowed_lateness, then backfill the late output.
    "late",
    # Reports that cannot be counted. High: read the rejected output; each record has its reason.
    "rejected",
    # Those of the rejected that are ahead of the stream's clock by more than the allowed skew. High: the clocks of many
    # devices are wrong; correct them there.
    "too_early",
    # Those of the rejected that are older than the allowed age. High: devices keep reports for too long, or their
    # clocks are behind; raise max_age, then backfill.
    "expired",
    # Panes of windows: early ones, those on time, and late ones. High: make early_every longer.
    "panes",
    # Windows that fired on time. None while reports are counted: the watermark stands still; find which partition or
    # subscription holds it.
    "windows",
]


def counter(name: CounterName) -> Counter:
    """Return the counter of that name."""
    return Metrics.counter(NAMESPACE, name)
