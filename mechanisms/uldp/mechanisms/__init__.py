"""The mathematics: how a device perturbs values, which symbols a report supports, and how counts give estimates.

This package uses NumPy and special functions, never Beam. Of this project it imports only ``uldp.schemas``.
"""

from uldp.mechanisms.assembly import kept, of_folds, of_sets, of_shares, of_strings
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.decoders.set_decoder import SetDecoder
from uldp.mechanisms.devices.clock import Clock, ClockError, Uptime
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.devices.ledger import FileLedger, Ledger, LedgerContent, MemoryLedger
from uldp.mechanisms.devices.spending import BudgetExceededError
from uldp.mechanisms.encodings.number_encoding import NumberEncoding, check_range
from uldp.mechanisms.encodings.set_encoding import SetEncoding
from uldp.mechanisms.families.set_selection.randomizer import SetSelection
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.laws.estimate import Estimate, part_of
from uldp.mechanisms.numbers.number import NumberDecoder
from uldp.mechanisms.numbers.outputs import NumberLaw, OutputsDecoder
from uldp.mechanisms.protocol.cells import Cells, count_symbols
from uldp.mechanisms.protocol.decoder import Decoder, require_output_counts, require_reports
from uldp.mechanisms.protocol.device_form import DeviceForm, sensitive_symbols, threshold, thresholds
from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import (
    IMPOSSIBLE_TAIL,
    IMPROBABLE_TAIL,
    BitNoise,
    Guarantee,
    Mechanism,
    PayloadForm,
    Privacy,
    PureMechanism,
    Randomness,
    UniformNoise,
)
from uldp.mechanisms.randomizers.reports import CountedReports
from uldp.mechanisms.tags.pum import Pum

__all__ = [
    "IMPOSSIBLE_TAIL",
    "IMPROBABLE_TAIL",
    "BitNoise",
    "BudgetExceededError",
    "Cells",
    "Channel",
    "Clock",
    "ClockError",
    "CountedReports",
    "Decoder",
    "Device",
    "DeviceForm",
    "Encoding",
    "Estimate",
    "FileLedger",
    "Guarantee",
    "Held",
    "LdpProtocol",
    "Ledger",
    "LedgerContent",
    "Mechanism",
    "MemoryLedger",
    "NumberDecoder",
    "NumberEncoding",
    "NumberLaw",
    "OutputsDecoder",
    "PayloadForm",
    "Privacy",
    "Pum",
    "PureMechanism",
    "Randomness",
    "SetDecoder",
    "SetEncoding",
    "SetSelection",
    "UniformNoise",
    "Uptime",
    "build_protocol",
    "check_range",
    "count_symbols",
    "kept",
    "of_folds",
    "of_sets",
    "of_shares",
    "of_strings",
    "part_of",
    "require_output_counts",
    "require_reports",
    "sensitive_symbols",
    "threshold",
    "thresholds",
]
