"""The data on the wire and on disk: Avro schemas, framing, typed records, collection specs.

This package imports none of the other packages.
"""

from uldp.schemas.errors import UldpError
from uldp.schemas.estimate import Estimate
from uldp.schemas.flags import Flag
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message, Report, ReportBatch
from uldp.schemas.rejected import Rejected
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.epsilon import protects
from uldp.schemas.specs.kinds import Kind, Number, Sets
from uldp.schemas.specs.mechanism_family import MechanismFamily, PrivateSpec
from uldp.schemas.specs.specfile import SpecError
from uldp.schemas.specs.variable import Variable
from uldp.schemas.statistic import Statistic
from uldp.schemas.table import Basis, Table

__all__ = [
    "Basis",
    "CollectionSpec",
    "Estimate",
    "Flag",
    "Kind",
    "MechanismFamily",
    "Message",
    "Number",
    "PrivateSpec",
    "Reason",
    "Rejected",
    "Report",
    "ReportBatch",
    "Sets",
    "SpecError",
    "Statistic",
    "Table",
    "UldpError",
    "Variable",
    "protects",
]
