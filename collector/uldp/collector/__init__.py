"""Turn the bytes of reports into counts: decode, validate, deduplicate, and count or reject each report.

This package uses NumPy and never Beam, so scripts can use it and fuzz tests can run it alone. Of this project it
imports only ``uldp.schemas`` and ``uldp.mechanisms``.
"""

from uldp.collector.collector import Collector
from uldp.collector.partial import Partial
from uldp.collector.reader import Decoded, ReportReader

__all__ = ["Collector", "Decoded", "Partial", "ReportReader"]
