from .errors import UldpError
from .estimate import Estimate
from .flags import Flag
from .reasons import Reason
from .records import Message, Report, ReportBatch
from .rejected import Rejected
from .specs.budget import protects
from .specs.collection import CollectionSpec
from .specs.kinds import Kind, Number, Sets
from .specs.mechanism_family import MechanismFamily, PrivateSpec
from .specs.specfile import SpecError
from .specs.variable import Variable
from .statistic import Statistic
from .table import Basis, Table

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
