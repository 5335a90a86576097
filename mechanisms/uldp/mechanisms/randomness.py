"""Randomness for devices. A ``numpy.random.Generator`` fits the same protocol, and is for simulation only.

A Generator is not cryptographic: who sees enough of its output can tell its state, and with it the true values.
"""

import math
import os

import numpy as np
import numpy.typing as npt

from uldp.schemas.arrays import Floats


class SystemRandomness:
    """The operating system's cryptographic randomness, as mechanisms draw from it. It has no state and no seed.

    Resolution: ``random`` returns multiples of 2^-53, so an event of probability x that a mechanism tests as
    ``random() < x`` has in truth the probability ceil(2^53 x) / 2^53. Mechanisms test their *noise* in this way (a
    uniform symbol, a false bit set, a true bit cleared): rounding makes it likelier by less than 2^-53, and never
    turns a small probability into 0. So the guarantee at epsilon stands (up to the rounding of x itself to a float).
    What is lost is utility, and only where probabilities near 2^-53 matter, at epsilon above 30: there the channel's
    q is too small by up to 2^-53.
    """

    def random(self, size: int | tuple[int, ...]) -> Floats:
        """Draw floats uniformly from the multiples of 2^-53 in [0, 1)."""
        return np.ldexp((_words(size) >> np.uint64(11)).astype(np.float64), -53)

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> npt.NDArray[np.int64]:
        """Draw integers from [low, high), each with the same probability.

        Raises:
            ValueError: if the range is empty.
        """
        span = high - low
        if span <= 0:
            raise ValueError(f"no integers in [{low}, {high})")
        words = _words(size)
        # Words beyond the last whole multiple of span would favour the small remainders: draw those again.
        last = np.uint64(2**64 - 1 - 2**64 % span)
        while (rejected := words > last).any():
            words[rejected] = _words(int(rejected.sum()))
        return (words % np.uint64(span)).astype(np.int64) + low


def _words(size: int | tuple[int, ...]) -> npt.NDArray[np.uint64]:
    """Read 64 random bits for each element of an array of shape ``size``."""
    count = math.prod(size) if isinstance(size, tuple) else size
    return np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64).reshape(size)
