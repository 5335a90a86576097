"""Numbers of a range as points of a grid."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.schemas.arrays import Floats, Symbols

#: ``NumberEncoding`` divides the range into at most 2^52 parts, which a float counts exactly.
_PART_BITS = 52


@dataclass(frozen=True)
class NumberEncoding(Encoding):
    """Rounds numbers in [low, high] to the points of a grid, at random and without bias.

    A number between two points becomes the upper one with the probability of its distance from the lower one, in steps.
    So the mean of the symbols, mapped back, is the number itself, up to 2^-51 of the range. Numbers outside of
    [low, high] become its nearest end first.

    Rounding is before the mechanism, so it spends no epsilon: the law of a report is a mixture of the laws for two
    symbols, and a mechanism bounds the ratio of any two of these.

    Attributes:
        low: The number of symbol 0.
        high: The number of symbol ``grid``.
        grid: The number of steps, 1 to 2^16. The symbols are 0, ..., grid.
    """

    low: float
    high: float
    grid: int

    def __post_init__(self) -> None:
        check_range(self.low, self.high)
        if not 1 <= self.grid <= 1 << 16:
            raise ValueError(f"a grid has 1 to 2^16 steps, got {self.grid}")

    def law(self, columns: Sequence[Held], size: int) -> Floats:
        parts, bits = self._parts(columns)
        below, rest = divmod(int(parts[0]), 1 << bits)
        r = np.zeros(size)
        r[below] = 1 - rest / (1 << bits)
        r[min(below + 1, self.grid)] += rest / (1 << bits)
        return r

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Symbols:
        """See ``Encoding``. Draws n integers, whatever the numbers, which must be finite and without tags."""
        parts, bits = self._parts(columns)
        return (parts + randomness.integers(0, 1 << bits, len(parts))) >> bits

    def device_form(self) -> DeviceForm:
        bits = _PART_BITS - (self.grid - 1).bit_length()
        return {"form": "grid", "low": self.low, "high": self.high, "grid": self.grid, "bits": bits}

    def _parts(self, columns: Sequence[Held]) -> tuple[Symbols, int]:
        """Return the place of each number in parts of a step, of which a step has 2^bits, and the bits."""
        inside = np.clip(finite_numbers(columns), self.low, self.high)
        # The random integer carries the part to the next step that often.
        bits = _PART_BITS - (self.grid - 1).bit_length()
        parts = np.rint((inside - self.low) / (self.high - self.low) * (self.grid << bits)).astype(np.int64)
        return parts, bits


def finite_numbers(columns: Sequence[Held]) -> Floats:
    """Return the numbers of the only column, shape (n,); ValueError if one is not finite, or behind a tag."""
    (held,) = columns
    if not np.isfinite(held.values).all():
        raise ValueError("a value is not a finite number")
    if (held.tags >= 0).any():
        raise ValueError("a number has no tags, so no user can hide it behind one")
    return held.values.astype(np.float64)


def check_range(low: float, high: float) -> None:
    """Raise ValueError unless numbers of [low, high] have a finite range that is not empty."""
    if not 0 < high - low < math.inf:
        raise ValueError(f"a range needs finite numbers, low below high, got low {low} and high {high}")
