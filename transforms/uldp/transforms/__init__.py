"""Beam transforms, thin: decode, deduplicate, count, window, estimate, read and write.

Each holds as little logic as it can: a public pure function first, a PTransform over it. Imports nothing of ours but
``uldp.schemas`` and ``uldp.mechanisms``.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uldp.transforms.aggregate import Aggregate, Aggregated
    from uldp.transforms.bigquery import WriteEstimatesToBigQuery
    from uldp.transforms.kafka import ReadFromKafka
    from uldp.transforms.pubsub import ReadSubscription
    from uldp.transforms.sinks import WriteResults
    from uldp.transforms.sources import ReadArchive, ReadLocalStream

__all__ = [
    "Aggregate",
    "Aggregated",
    "ReadArchive",
    "ReadFromKafka",
    "ReadLocalStream",
    "ReadSubscription",
    "WriteEstimatesToBigQuery",
    "WriteResults",
]

_MODULE_OF = {
    "Aggregate": "aggregate",
    "Aggregated": "aggregate",
    "ReadArchive": "sources",
    "ReadFromKafka": "kafka",
    "ReadLocalStream": "sources",
    "ReadSubscription": "pubsub",
    "WriteEstimatesToBigQuery": "bigquery",
    "WriteResults": "sinks",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: Beam takes a second to import, and not every module here needs it."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
