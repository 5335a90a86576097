"""What crosses a wire or a disk: Avro schemas, framing, typed records, collection specs.

Imports nothing of the other packages.
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
