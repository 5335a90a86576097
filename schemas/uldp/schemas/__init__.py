"""The data on the wire and on disk: Avro schemas, framing, typed records, collection specs.

This package imports none of the other packages.
"""

from uldp.schemas.collection import CollectionSpec
from uldp.schemas.flags import Flag
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Estimate, Message, Rejected, Report, ReportBatch, SupportCounts
from uldp.schemas.specfile import SpecError

__all__ = [
    "CollectionSpec",
    "Estimate",
    "Flag",
    "Message",
    "Reason",
    "Rejected",
    "Report",
    "ReportBatch",
    "SpecError",
    "SupportCounts",
]
