"""The mathematics: how a device obfuscates, what a report supports, what the counts say.

NumPy and special functions, never Beam. Imports nothing of ours but ``uldp.schemas``.
"""

from uldp.mechanisms.catalog import build_mechanism
from uldp.mechanisms.channel import Channel
from uldp.mechanisms.device import Device
from uldp.mechanisms.mechanism import Mechanism
from uldp.mechanisms.pum import Pum

__all__ = ["Channel", "Device", "Mechanism", "Pum", "build_mechanism"]
