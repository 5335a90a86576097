"""What becomes of each report between bytes and counts: decoded, validated, deduplicated, counted or rejected.

NumPy, never Beam: usable in a script, and fuzzed alone. Imports nothing of ours but ``uldp.schemas`` and
``uldp.mechanisms``.
"""

from uldp.collector.decoder import Decoded, ReportDecoder
from uldp.collector.partial import PartialCounts

__all__ = ["Decoded", "PartialCounts", "ReportDecoder"]
