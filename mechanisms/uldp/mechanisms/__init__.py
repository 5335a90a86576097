"""The mathematics: how a device perturbs values, which symbols a report supports, and how counts give estimates.

This package uses NumPy and special functions, never Beam. Of this project it imports only ``uldp.schemas``.
"""

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.channel import Channel
from uldp.mechanisms.device import Device
from uldp.mechanisms.ledger import FileLedger, Ledger, LedgerContent, MemoryLedger
from uldp.mechanisms.mechanism import Mechanism
from uldp.mechanisms.protocol import LdpProtocol
from uldp.mechanisms.pum import Pum
from uldp.mechanisms.spending import BudgetExceededError

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
