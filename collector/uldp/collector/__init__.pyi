from .collector import Collector
from .partial import Partial
from .reader import Decoded, ReportReader

__all__ = ["Collector", "Decoded", "Partial", "ReportReader"]
