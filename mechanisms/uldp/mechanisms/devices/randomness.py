"""Randomness for devices. A ``numpy.random.Generator`` fits the same protocol, but only simulations may use it.

A Generator is not cryptographic: an observer of enough output can compute its state, and with it the true values.
"""

import math
import os

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.schemas.arrays import Floats


class SystemRandomness:
    """The operating system's cryptographic randomness, with the methods that mechanisms need; no state and no seed.

    Resolution: ``random`` returns multiples of 2^-53. If a mechanism tests an event of probability x by
    ``random() < x``, the event has the actual probability ceil(2^53 x) / 2^53. Mechanisms test their *noise* in this
    way (a uniform symbol, a false bit set, a true bit cleared). Rounding thus makes noise likelier by less than 2^-53,
    and never turns a small probability into 0. So the guarantee at epsilon holds (up to the rounding of x itself to a
    float). Rounding costs only utility, and only if probabilities near 2^-53 matter, at epsilon above 30: the
    channel's q is then too small by up to 2^-53.
    """

    def random(self, size: int | tuple[int, ...]) -> Floats:
        """Draw floats uniformly from the multiples of 2^-53 in [0, 1)."""
        return np.ldexp((_words(size) >> np.uint64(11)).astype(np.float64), -53)

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> npt.NDArray[np.int64]:
        """Draw integers uniformly from [low, high), which must not be empty."""
        span = high - low
        if span <= 0:
            raise ValueError(f"the range [{low}, {high}) has no integers")
        words = _words(size)
        # Words beyond the last whole multiple of span would favour small remainders, so draw these words again.
        last = np.uint64(2**64 - 1 - 2**64 % span)
        while (rejected := words > last).any():
            words[rejected] = _words(int(rejected.sum()))
        return (words % np.uint64(span)).astype(np.int64) + low


class KeptDraws(Randomness):
    """Randomness for an encoding that is to choose the same each time: it gives the integers that it gave before.

    A device keeps them. Their ranges must be those of before, and come in the same order.
    """

    def __init__(self, kept: npt.NDArray[np.int64], randomness: Randomness) -> None:
        self.made: list[npt.NDArray[np.int64]] = []  # all integers, in pieces of one draw each
        self._kept, self._randomness = kept, randomness

    def random(self, size: int | tuple[int, ...]) -> Floats:
        raise TypeError("an encoding draws integers only")

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> npt.NDArray[np.int64]:
        drawn = self._randomness.integers(low, high, size)
        start = sum(each.size for each in self.made)
        kept = self._kept[start : start + drawn.size]
        self.made.append(kept.reshape(drawn.shape) if len(kept) == drawn.size else drawn)
        return self.made[-1]


def _words(size: int | tuple[int, ...]) -> npt.NDArray[np.uint64]:
    """Return an array of 64 random bits each."""
    count = math.prod(size) if isinstance(size, tuple) else size
    return np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64).reshape(size)
