from .assembly import kept, of_folds, of_sets, of_shares, of_strings
from .catalog import build_protocol
from .decoders.set_decoder import SetDecoder
from .devices.clock import Clock, ClockError, Uptime
from .devices.device import Device
from .devices.ledger import FileLedger, Ledger, LedgerContent, MemoryLedger
from .devices.spending import BudgetExceededError
from .encodings.number_encoding import NumberEncoding, check_range
from .encodings.set_encoding import SetEncoding
from .families.set_selection.randomizer import SetSelection
from .kernels.intervals import outside_p_value
from .laws.channel import Channel
from .laws.estimate import Estimate, part_of
from .numbers.outputs import NumberDecoder, NumberLaw, OutputsDecoder
from .protocol.cells import Cells, count_symbols
from .protocol.decoder import Decoder, require_output_counts, require_reports
from .protocol.device_form import DeviceForm, sensitive_symbols, threshold, thresholds
from .protocol.encoding import Encoding, Held
from .protocol.ldp_protocol import LdpProtocol
from .protocol.mechanism import (
    IMPOSSIBLE_TAIL,
    IMPROBABLE_TAIL,
    Guarantee,
    Mechanism,
    PayloadForm,
    Privacy,
    PureMechanism,
    Randomness,
)
from .protocol.noise import BitNoise, UniformNoise
from .randomizers.reports import CountedReports
from .tags.pum import Pum

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
    "outside_p_value",
    "part_of",
    "require_output_counts",
    "require_reports",
    "sensitive_symbols",
    "threshold",
    "thresholds",
]
