"""The registry of counters. Flink's metrics get counters alone, which each attempt of a task counts anew from 0."""

from typing import Literal

from apache_beam.metrics import Metrics

from uldp.transforms.internals import Counter

NAMESPACE = "uldp"

CounterName = Literal[
    # All reports that arrived: counted or not. A message that cannot be decoded is one report.
    "received",
    # Reports that are in the counts. Lower than received: find the rest in the next three counters.
    "counted",
    # Reports with an id that was seen before. High: a client or a broker resends; the estimates are not affected.
    "duplicate",
    # Reports that came after their window had closed. High: raise allowed_lateness, then backfill the late output.
    "late",
    # Messages that the source lost before they could be read. Not 0: raise the retention of the topic.
    "missing",
    # Reports that cannot be counted. High: read the rejected output; each record has its reason.
    "rejected",
    # Rejected reports that are ahead of the stream's clock by more than the allowed skew. High: the clocks of many
    # devices are wrong; correct them on the devices.
    "too_early",
    # Rejected reports that are older than the allowed age. High: devices keep reports for too long, or their clocks are
    # behind; raise max_age, then backfill.
    "expired",
    # Panes of windows: early, on-time and late ones. High: make early_every longer.
    "panes",
    # Windows that fired on time. None while reports are counted: the watermark does not advance; find the partition or
    # subscription that holds it back.
    "windows",
]


def counter(name: CounterName) -> Counter:
    """Return the counter of that name."""
    return Metrics.counter(NAMESPACE, name)
