"""A few bits of a unary encoding: a device reports those of one of several fixed designs.

Source: Ding, Kulkarni & Yekhanin, "Collecting Telemetry Data Privately" (NeurIPS 2017), section 3 (dBitFlip); equations
(53) and (54) of the survey of Wang et al. (Sensors 20, 2020). There, each device draws w of the k symbols for ever:
such a set is a fingerprint of the device. Here it draws one of ceil(k/w) sets that are the same for all devices, with
the same variance.
"""

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding
from uldp.mechanisms.protocol.device_form import DeviceForm, threshold
from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.mechanism import Guarantee, Privacy, Randomness
from uldp.mechanisms.randomizers.reports import AlikeBits, BitTotals
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Mask, Values


class FlippedBits(UnaryEncoding):
    """The bits of one design: whether the true symbol is each of w symbols, each flipped with probability f.

    With E = e^epsilon, f = 1/(sqrt(E) + 1) (53), but 1/(E + 1) if w is 1. The inputs are 0, ..., w-1 for the symbols of
    the design, and w for all others, whose bits are all false before the flips.

    Guarantee: one report is epsilon-LDP. Two inputs differ in two bits at most, and each has the factor (1-f)/f =
    sqrt(E). In a design of one symbol they differ in one bit, which has the factor E. ``SystemRandomness`` draws a flip
    with a probability that is rounded up, which lowers this factor.
    """

    def __init__(self, width: int, epsilon: float) -> None:
        if width < 1:
            raise ValueError(f"a design has one symbol or more, got {width}")
        self._flipped = 1 / (math.exp(epsilon / min(width, 2)) + 1)
        flipped = np.full(width, self._flipped)
        self._set(Guarantee(Privacy.LDP, epsilon), np.ones(width, dtype=np.bool_), flipped, flipped)
        self.size = width + 1

    @cached_property
    def bit_totals(self) -> BitTotals:
        """See the base class; a device may hold no symbol of the design."""
        own, others = AlikeBits(1, 1 - self._flipped), AlikeBits(self.bits - 1, self._flipped)
        return BitTotals([[own, others], [AlikeBits(self.bits, self._flipped)]])

    def _drawn(self, symbols: Values, randomness: Randomness) -> Mask:
        true: Mask = symbols[:, np.newaxis] == np.arange(self.statistic_size)
        flipped: Mask = randomness.random(true.shape) < self._flipped
        return true ^ flipped

    def device_form(self) -> DeviceForm:
        return {"form": "flips", "size": self.bits, "flip": threshold(self._flipped)}


def design_widths(size: int, bits: int) -> list[int]:
    """Return the number of symbols of each design: ``bits`` neighbours each, and fewer in the last one."""
    return [min(bits, size - first) for first in range(0, size, bits)]


class DesignEncoding(Encoding):
    """Says which symbol of one design a device holds, or that it holds none of them.

    The designs are public. With a permanent response, a device keeps the draw of its design, and has it for ever.
    """

    def __init__(self, values: Pum, first: int, width: int) -> None:
        self._values, self._first, self._width = values, first, width

    @property
    def base(self) -> Encoding:
        return self._values

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Values:
        return self.of_base(self._values.encode(columns, randomness))

    def device_form(self) -> DeviceForm:
        return {"form": "design", "first": self._first, "width": self._width}

    def of_base(self, symbols: Values) -> Values:
        place = symbols - self._first
        return np.where((place >= 0) & (place < self._width), place, self._width)
