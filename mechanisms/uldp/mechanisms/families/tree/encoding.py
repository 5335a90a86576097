"""The encodings of a tree: a number becomes a bin, and a bin the block of neighbours that holds it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uldp.mechanisms.encodings.number_encoding import check_range, finite_numbers
from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.schemas.arrays import Values


@dataclass(frozen=True)
class BinEncoding(Encoding):
    """Maps numbers in [low, high] to bins of one width; the last bin has both of its ends.

    Numbers outside of [low, high] become its nearest end first. Unlike the points of ``NumberEncoding``, a bin has no
    rounding: shares of ranges with bin edges as ends are exact.
    """

    low: float
    high: float
    bins: int

    def __post_init__(self) -> None:
        check_range(self.low, self.high)

    def device_form(self) -> DeviceForm:
        return {"form": "bins", "low": self.low, "high": self.high, "bins": self.bins}

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Values:
        inside = np.clip(finite_numbers(columns), self.low, self.high)
        bins = np.floor((inside - self.low) / (self.high - self.low) * self.bins).astype(np.int64)
        return np.minimum(bins, self.bins - 1)


@dataclass(frozen=True)
class BlockEncoding(Encoding):
    """Maps what devices hold to blocks of ``width`` neighbouring bins."""

    bins: Encoding
    width: int

    @property
    def base(self) -> Encoding:
        return self.bins

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Values:
        return self.of_base(self.bins.encode(columns, randomness))

    def device_form(self) -> DeviceForm:
        return {"form": "blocks", "width": self.width}

    def of_base(self, symbols: Values) -> Values:
        return symbols // self.width
