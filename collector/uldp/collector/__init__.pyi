from .collector import Collector as Collector
from .partial import Partial as Partial
from .reader import Decoded as Decoded
from .reader import ReportReader as ReportReader
