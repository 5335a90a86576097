"""Two-sided geometric noise: the Laplace mechanism with integers, for one number.

Source: Ghosh, Roughgarden & Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms" (STOC 2009), section 2,
with the sensitivity g of a symbol; equation (58) of the survey of Wang et al. (Sensors 20, 2020) for the Laplace
mechanism for a mean. The table of integers below is ours.
"""

import decimal
from decimal import Decimal
from functools import cached_property

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.mechanism import IMPOSSIBLE_TAIL, IMPROBABLE_TAIL, Guarantee, Privacy, Randomness
from uldp.mechanisms.randomizers.reports import CountedReports
from uldp.schemas.arrays import Counts, Floats, Mask, Payloads, Values

# Decimals of so many digits are the same on every machine; the functions of NumPy are not.
_DIGITS = decimal.Context(prec=40)
# e^(epsilon/g) is rounded down by this factor, which is more than the error of so many digits.
_ROUNDED = 1 - Decimal(10) ** -30
# All weights together are at most this, below which a device draws its integers.
_MOST_DRAWS = 1 << 53


class Geometric(CountedReports):
    """A symbol of 0, ..., g plus symmetric noise, where noise that is larger by one is less probable by a factor F.

    The device adds noise from -N to N, and moves a sum below -T or above g + T to this end, for T = N - g. The payload
    is the result plus T, so it is one of g + 1 + 2T symbols.

    The noise k has the probability w(|k|) over the sum of all weights, integers with

        w(N) = ceil(64 / (F - 1)^2)      w(N-1) = floor((F - 1) w(N))      w(k-1) = floor(F w(k))

    for F = e^(epsilon/g), rounded down. N is the largest for which all weights together are at most 2^53.

    Guarantee: one report is epsilon-LDP, for every user and the whole number, exactly. Neighboring weights differ by at
    most F. The same holds for the sums S(k) of the weights from k on, by induction: S(N-1) = w(N-1) + w(N) <= F S(N),
    and S(k-1) = w(k-1) + S(k) <= F w(k) + F S(k+1) = F S(k). So the probabilities of each payload under two neighboring
    symbols differ by at most F, those at the ends too, and under any two symbols by at most F^g <= e^epsilon.
    """

    def __init__(self, epsilon: float, grid: int) -> None:
        self.guarantee = Guarantee(Privacy.LDP, epsilon)
        side = _weights(epsilon, grid)
        self.grid, self.margin = grid, len(side) - 1 - grid
        if self.margin < 1:
            raise ValueError(f"epsilon {epsilon:g} leaves no noise beyond a grid of {grid} steps; take a smaller one")
        self.weights: Counts = np.array([*side[:0:-1], *side], dtype=np.int64)
        self.size = grid + 1
        self._of_payloads(grid + 1 + 2 * self.margin)
        self.structure = (grid, self.margin)

    @cached_property
    def _below(self) -> Counts:
        return np.cumsum(self.weights)

    @property
    def noise_variance(self) -> float:
        """The variance of the noise, in steps of the grid."""
        noise = np.arange(len(self.weights)) - len(self.weights) // 2
        return float(self.weights @ noise**2.0 / self._below[-1])

    def perturb(self, symbols: Values, randomness: Randomness) -> npt.NDArray[np.uint32]:
        self.check_symbols(symbols)
        drawn = randomness.integers(0, int(self._below[-1]), len(symbols))
        # The payload of noise k is i + k + T; ``drawn`` selects k + N, and N - T is g.
        sums = symbols + np.searchsorted(self._below, drawn, side="right") - self.grid
        payloads: npt.NDArray[np.uint32] = np.clip(sums, 0, self.statistic_size - 1).astype(np.uint32)
        return payloads

    def device_form(self) -> DeviceForm:
        return {"form": "steps", "grid": self.grid, "margin": self.margin, "ends": self._below.tolist()}

    def possible(self, payloads: Payloads) -> Mask:
        return self.inspect(payloads)[0]

    def inspect(self, payloads: Payloads) -> tuple[Mask, Mask]:
        (least, largest), (low, high) = self.ends(IMPOSSIBLE_TAIL), self.ends(IMPROBABLE_TAIL)
        return (payloads >= least) & (payloads <= largest), (payloads < low) | (payloads > high)

    def ends(self, tail: float) -> tuple[int, int]:
        """Return the least and the largest payload of all but a share ``tail`` of honest reports, at least."""
        # Under the symbol 0, a payload is y or less with the probability of noise of y - T or less.
        unreached = int(np.searchsorted(self._below, tail / 2 * int(self._below[-1]), side="right"))
        least = max(unreached - self.grid, 0)
        return least, self.statistic_size - 1 - least

    def law(self, r: Floats) -> Floats:
        sums = np.convolve(r, self.weights / self._below[-1])  # of i + k + N, from 0 to g + 2N
        law = sums[self.grid : len(sums) - self.grid].copy()
        law[0] += sums[: self.grid].sum()
        law[-1] += sums[len(sums) - self.grid :].sum()
        return law

    def describe(self, payload: int | bytes) -> str:
        assert isinstance(payload, int)
        return f"step {payload - self.margin} of a grid from 0 to {self.grid}, with noise"


def _weights(epsilon: float, grid: int) -> list[int]:
    with decimal.localcontext(_DIGITS):
        factor = (Decimal(epsilon) / grid).exp() * _ROUNDED
        last = int(64 / (factor - 1) ** 2) + 1
        weights = [last, int((factor - 1) * last)]
        total = sum(weights)
        while 2 * (total + (inner := int(factor * weights[-1]))) <= _MOST_DRAWS:
            weights.append(inner)
            total += inner
    return weights[::-1]
