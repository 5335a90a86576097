"""Randomness of which each draw is known: as a list of pairs, the number below which an integer is drawn, and it."""

import math
import random

import numpy as np
import numpy.typing as npt

from uldp.schemas.arrays import Floats

Draw = tuple[int, int]
Size = int | tuple[int, ...]
#: A float is an integer below this, divided by this.
FLOATS = 1 << 53


class Recorded:
    """Draws from a seed, which are the same under each version of Python and NumPy, and keeps a list of them.

    Args:
        seed: Any text.
        large: Whether half of the floats are 7/8 or more, so that reports without noise are among few of them.
    """

    def __init__(self, seed: str, *, large: bool = False) -> None:
        self.draws: list[Draw] = []
        self._source, self._large = random.Random(seed), large

    def random(self, size: Size) -> Floats:
        return np.ldexp(self.integers(0, FLOATS, size).astype(np.float64), -53)

    def integers(self, low: int, high: int, size: Size) -> npt.NDArray[np.int64]:
        drawn = [
            (high - low, self._below(high - low)) for _ in range(math.prod(size) if isinstance(size, tuple) else size)
        ]
        self.draws += drawn
        return low + np.array([number for _, number in drawn], dtype=np.int64).reshape(size)

    def _below(self, below: int) -> int:
        number = self._source.getrandbits(64)
        if self._large and below == FLOATS and self._source.getrandbits(1):
            number |= 7 * FLOATS // 8
        return number % below
