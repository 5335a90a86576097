"""The mathematics: how a device perturbs values, which symbols a report supports, and how counts give estimates.

This package uses NumPy and special functions, never Beam. Of this project it imports only ``uldp.schemas``.
"""

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.channel import Channel
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.devices.ledger import FileLedger, Ledger, LedgerContent, MemoryLedger
from uldp.mechanisms.devices.spending import BudgetExceededError
from uldp.mechanisms.mechanism import Mechanism
from uldp.mechanisms.protocol import LdpProtocol
from uldp.mechanisms.tags.pum import Pum

__all__ = [
    "BudgetExceededError",
    "Channel",
    "Device",
    "FileLedger",
    "LdpProtocol",
    "Ledger",
    "LedgerContent",
    "Mechanism",
    "MemoryLedger",
    "Pum",
    "build_protocol",
]
