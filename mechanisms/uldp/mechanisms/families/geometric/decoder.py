"""The mean of a number, from the sums of ``Geometric``."""

import math
from collections.abc import Iterator

import numpy as np

from uldp.mechanisms.encodings.number_encoding import check_range
from uldp.mechanisms.families.geometric.randomizer import Geometric
from uldp.mechanisms.numbers.outputs import NumberLaw, OutputsDecoder
from uldp.mechanisms.protocol.mechanism import IMPOSSIBLE_TAIL
from uldp.schemas.arrays import Floats


class GeometricDecoder(OutputsDecoder):
    """Estimates the mean of a number in [low, high].

    The noise is symmetric, so the mean of the payloads is that of the symbols. Sums that are moved to an end move it by
    less than 10^-4 steps for each epsilon of a spec, and by less than 10^-8 for those from .1 to 10. Estimates and
    intervals are not cut to [low, high].
    """

    def __init__(self, mechanism: Geometric, low: float, high: float) -> None:
        """Build the decoder.

        Args:
            mechanism: The mechanism of the reports.
            low: The number of the symbol 0.
            high: The number of the symbol g.

        Raises:
            ValueError: if the range is empty or not finite.
        """
        check_range(low, high)
        self.mechanism, self._step = mechanism, (high - low) / mechanism.grid
        numbers = low + self._step * (np.arange(mechanism.statistic_size, dtype=np.float64) - mechanism.margin)
        law = NumberLaw((high - low) / 2, self._step**2 * mechanism.noise_variance)
        super().__init__(low, high, numbers, law)

    def forecast(self, n: int) -> Floats:
        """Return the standard error of the mean of n uniform numbers, shape (1,)."""
        grid = self.mechanism.grid
        # A uniform number of [0, g], and its rounding to a step at random, which adds 1/6 on average.
        return np.array([self._step * math.sqrt((grid**2 / 12 + 1 / 6 + self.mechanism.noise_variance) / n)])

    @property
    def weight(self) -> float:
        """See the base class."""
        least, largest = self.mechanism.ends(IMPOSSIBLE_TAIL)
        return (largest - least) / self.mechanism.grid

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        """Yield the noise, and the error at n reports."""
        noise = self._step * math.sqrt(self.mechanism.noise_variance)
        yield "noise", f"standard deviation {noise:.3g}, in steps of {self._step:.3g}"
        yield self.heaviest_fact(n)
        yield "errors", f"of the mean at n = {n:,}, uniform values: {self.forecast(n)[0]:.3g}"
