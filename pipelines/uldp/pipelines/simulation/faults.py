"""Fault injection: reports from broken devices and hostile clients. The collector must reject each of them."""

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from uldp.collector.collections import ServedCollection
from uldp.schemas.arrays import Payloads, Times
from uldp.schemas.codec.columnar import Layout, report_schema
from uldp.schemas.framing import HEADER_SIZE, MAGIC
from uldp.schemas.specs.durations import milliseconds

Faults = npt.NDArray[np.int8]

#: How far the clock of a broken device exceeds the allowed skew: a year in milliseconds.
CLOCK_ERROR = 365 * 86_400_000


class Fault(IntEnum):
    """The fault of a report; the decoder must reject the report with the ``Reason`` of the same name."""

    NONE = 0
    TOO_EARLY = 1
    OUT_OF_DOMAIN = 2
    IMPOSSIBLE_PAYLOAD = 3
    # The columns of a batch can hold the faults above, but not the following faults.
    WRONG_LENGTH = 4
    NOT_AVRO = 5
    TRUNCATED = 6
    UNKNOWN_SCHEMA = 7
    UNKNOWN_VERSION = 8


def fits_batch(faults: Faults) -> npt.NDArray[np.bool_]:
    """Return which reports have faults that the columns of a batch can hold."""
    return faults < Fault.WRONG_LENGTH


class FaultInjector:
    """Damages the reports of one collection."""

    def __init__(self, served: ServedCollection, layout: Layout) -> None:
        self._collection = served
        self._layout = layout
        # Versions start at 1, so version 0 is unknown.
        self._unknown_prefix = Layout.of(report_schema(), served.spec.collection, 0, layout.width).prefix
        impossible = {Fault.NONE}
        if layout.width is None:
            impossible |= {Fault.IMPOSSIBLE_PAYLOAD, Fault.WRONG_LENGTH}
        else:
            impossible.add(Fault.OUT_OF_DOMAIN)
            if served.mechanism.possible(np.full((1, layout.width), 0xFF, dtype=np.uint8)).all():
                impossible.add(Fault.IMPOSSIBLE_PAYLOAD)
        #: The faults that reports of this collection can have. A symbol cannot have a wrong length. If every symbol is
        #: sensitive and the bits fill their bytes, no bits are impossible.
        self.faults = tuple(fault for fault in Fault if fault not in impossible)

    def draw(self, n: int, rng: np.random.Generator) -> Faults:
        """Draw n faults uniformly."""
        return rng.choice(np.array(self.faults, dtype=np.int8), n)

    def damage_columns(self, faults: Faults, event_times: Times, payloads: Payloads) -> None:
        """Damage event times and payloads in place, by the faults that a batch can hold."""
        skew = milliseconds(self._collection.spec.limits.max_clock_skew)
        # Devices have rounded their event times down by up to a slice.
        event_times[faults == Fault.TOO_EARLY] += skew + CLOCK_ERROR + self._collection.slice_size
        if self._layout.width is None:
            payloads[faults == Fault.OUT_OF_DOMAIN] += self._collection.mechanism.form.symbols
        else:
            payloads[faults == Fault.IMPOSSIBLE_PAYLOAD] = 0xFF

    def damage_messages(self, faults: Faults, messages: list[bytes], rng: np.random.Generator) -> None:
        """Damage encoded single reports in place, by the faults that no batch can hold."""
        for row in np.flatnonzero(~fits_batch(faults)).tolist():
            messages[row] = self._damaged(Fault(faults[row]), messages[row], rng)

    def _damaged(self, fault: Fault, message: bytes, rng: np.random.Generator) -> bytes:
        match fault:
            case Fault.NOT_AVRO:
                # Not 0: random bytes behind it may be the framing of a schema registry.
                return b"\xff" + rng.bytes(len(message))
            case Fault.TRUNCATED:
                return message[: rng.integers(HEADER_SIZE, len(message))]
            case Fault.UNKNOWN_SCHEMA:
                inverted = bytes(0xFF - byte for byte in message[len(MAGIC) : HEADER_SIZE])
                return MAGIC + inverted + message[HEADER_SIZE:]
            case Fault.UNKNOWN_VERSION:
                return self._unknown_prefix + message[len(self._layout.prefix) :]
            case Fault.WRONG_LENGTH:
                assert self._layout.width is not None  # a symbol never has this fault
                head = message[: -self._layout.width - len(self._layout.payload_prefix)]
                bits = message[-self._layout.width :]
                shorter = Layout(self._layout.prefix, len(bits) - 1)
                return head + shorter.payload_prefix + bits[1:]
            case _:
                raise AssertionError(f"{fault!r} applies only to columns")
