from .collector import Collector
from .collector.experiment import Expected, Protocol, Sample, compare, protocol
from .mechanisms import BudgetExceededError, Device
from .schemas import CollectionSpec, SpecError, UldpError

__version__: str

__all__ = [
    "BudgetExceededError",
    "CollectionSpec",
    "Collector",
    "Device",
    "Expected",
    "Protocol",
    "Sample",
    "SpecError",
    "UldpError",
    "compare",
    "protocol",
]
