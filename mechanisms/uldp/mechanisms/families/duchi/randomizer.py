"""The mean of one number, from one bit of each device: the mechanism of Duchi et al., also known as 1BitMean.

Sources: Duchi, Jordan & Wainwright, "Minimax Optimal Procedures for Locally Private Estimation" (JASA 113, 2018), for
one dimension; Ding, Kulkarni & Yekhanin, "Collecting Telemetry Data Privately" (NeurIPS 2017), section 2; equations
(59), (64) and (65) of the survey of Wang et al. (Sensors 20, 2020).
"""

import math

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.protocol.device_form import DeviceForm, threshold
from uldp.mechanisms.protocol.mechanism import Guarantee, Privacy, Randomness
from uldp.mechanisms.randomizers.reports import UniformReports
from uldp.schemas.arrays import Floats, Values

#: The steps of the grid of ``Duchi``. Rounding to it costs no accuracy: Pr(1 | i) is linear in i, so a report has the
#: same law as without a grid.
GRID = 1 << 16


class Duchi(UniformReports):
    """One bit about a number, over the symbols 0, ..., g of a ``NumberEncoding`` with g steps, by default ``GRID``.

    With E = e^epsilon, the payload is 1 with the probability (64)

        Pr(1 | i) = 1/(E+1) + (E-1)/(E+1) i/g.

    The device draws a bit with Pr(1) = i/g, exactly, as an integer, and flips it with probability f = 1/(E+1), the
    noise, which ``SystemRandomness`` makes likelier by less than 2^-53. Pr(1 | i) is then from f to 1 - f.

    Guarantee: one report is epsilon-LDP, for every user and the whole number. The probabilities of either report under
    any two numbers, within the range or not, differ by at most a factor E, as those under ``low`` and ``high`` do. The
    range is public; nobody may choose it from the numbers themselves.
    """

    def __init__(self, epsilon: float, grid: int = GRID) -> None:
        self._of_payloads(2)
        self.grid, self.size = grid, grid + 1
        self.flip_probability = flip_probability(epsilon)
        self.guarantee = Guarantee(Privacy.LDP, epsilon)

    def perturb(self, symbols: Values, randomness: Randomness) -> npt.NDArray[np.uint32]:
        self.check_symbols(symbols)
        bits = randomness.integers(0, self.grid, len(symbols)) < symbols
        return (bits ^ (randomness.random(len(symbols)) < self.flip_probability)).astype(np.uint32)

    @property
    def uniform_probability(self) -> float:
        """The probability of a uniform bit: 2f, because half of the uniform bits are those of the number."""
        return 2 * self.flip_probability

    def device_form(self) -> DeviceForm:
        return {"form": "bit", "grid": self.grid, "flip": threshold(self.flip_probability)}

    def law(self, r: Floats) -> Floats:
        """Return the probabilities of 0 and 1, shape (2,), by (64)."""
        one = self.flip_probability + (1 - 2 * self.flip_probability) * float(r @ np.arange(self.size)) / self.grid
        return np.array([1 - one, one])


def flip_probability(epsilon: float) -> float:
    """Return f = 1/(E+1), the probability of the noise of one bit; ValueError if epsilon is not positive and finite."""
    # 1/E cannot overflow.
    inverse = math.exp(-epsilon) if epsilon > 0 else math.nan
    flip = inverse / (1 + inverse)
    if not 0 < flip < 0.5:
        raise ValueError(f"epsilon must be positive and finite, got {epsilon}")
    return flip
