"""A number as a symbol near it, drawn with integers only: one family that has known mechanisms as its cases.

Sources: the piecewise mechanism (Wang et al., "Collecting and Analyzing Multidimensional Data with Local Differential
Privacy", ICDE 2019; survey eq. 62); the square wave mechanism (Li et al., "Estimating Numerical Distributions under
Local Differential Privacy", SIGMOD 2020, section 4). Both draw real numbers; here everything is an integer, because a
sampler of floats does not keep epsilon exactly (Mironov, CCS 2012).
"""

import math
from decimal import Decimal
from typing import Literal

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.mechanism import Guarantee, Privacy, Randomness
from uldp.mechanisms.randomizers.reports import UniformReports
from uldp.schemas.arrays import Floats, Values
from uldp.schemas.specs.budget import MIN_EPSILON

#: How W is chosen: for the least variance of the mean at the input where it is largest; with W/G = 1/sqrt(E); or where
#: the upper bound of the information that an output has about the input is highest.
Width = Literal["auto", "piecewise", "square-wave"]
#: ``perturb`` decides between noise and truth by an integer below this.
_RESOLUTION = 1 << 53


class Block(UniformReports):
    """Sends one of G+W symbols; those of the block [i, i+W) are E = e^epsilon times as likely for the input i.

    Inputs are the grid points 0, ..., G of a range, the ends of its bins, and outputs are 0, ..., G+W-1. With the
    probability

        noise = (G + W) / (G + W E)

    the output is uniform over all G+W symbols, otherwise it is uniform over the block of the input. So

        E[j | i] = noise (G+W-1)/2 + (1 - noise) (i + (W-1)/2)

    is linear in i, and the mean of the outputs gives an unbiased mean of the inputs for every width W.

    Guarantee: for every output, the likelihoods under any two inputs differ by at most the factor E. ``perturb`` draws
    integers only. It rounds the probability of noise up to a multiple of 2^-53, with E computed to 28 digits, so that
    the ratio is never above E. If it also draws the input at random (stochastic rounding to the grid), the likelihoods
    become averages over inputs, and the guarantee is the same.
    """

    width: int

    def __init__(self, epsilon: float, bins: int, width: Width | int = "auto") -> None:
        if not epsilon >= MIN_EPSILON:
            raise ValueError(f"epsilon must be {MIN_EPSILON} or more, got {epsilon}")
        if bins < 1:
            raise ValueError(f"a range has 1 bin or more, got {bins}")
        self.guarantee = Guarantee(Privacy.LDP, epsilon)
        self.grid = bins
        self.width = width if isinstance(width, int) else _width(epsilon, bins, width)
        outputs = self.grid + self.width
        self._noise_below = math.ceil(
            _RESOLUTION * Decimal(outputs) / (self.grid + self.width * Decimal(epsilon).exp())
        )
        self.noise = self._noise_below / _RESOLUTION
        self.size = self.grid + 1
        self._of_payloads(outputs)

    def perturb(self, symbols: Values, randomness: Randomness) -> npt.NDArray[np.uint32]:
        self.check_symbols(symbols)
        n = len(symbols)
        noisy = randomness.integers(0, _RESOLUTION, n) < self._noise_below
        anywhere = randomness.integers(0, self.statistic_size, n)
        near = symbols + randomness.integers(0, self.width, n)
        return np.where(noisy, anywhere, near).astype(np.uint32)

    @property
    def uniform_probability(self) -> float:
        """The probability of a uniform output; otherwise an output is uniform in the block of the input."""
        return self.noise

    def device_form(self) -> DeviceForm:
        return {"form": "interval", "grid": self.grid, "width": self.width, "noise": self._noise_below}

    def law(self, r: Floats) -> Floats:
        near: Floats = np.convolve(r, np.full(self.width, (1 - self.noise) / self.width))
        return near + self.noise / self.statistic_size

    def input_at(self, outputs: npt.NDArray[np.number]) -> Floats:
        """Return the inputs that have these mean outputs; the inverse of E[j | i]."""
        uniform = self.noise * (self.statistic_size - 1) / 2
        return np.asarray((outputs - uniform) / (1 - self.noise) - (self.width - 1) / 2)

    def variance(self, symbols: npt.NDArray[np.number]) -> Floats:
        """Return the variance of ``input_at`` of one report given each input, in squared steps of the grid."""
        return _variance(symbols, self.grid, self.width, self.noise)


def _width(epsilon: float, grid: int, width: Width) -> int:
    match width:
        case "piecewise":
            share = math.exp(-epsilon / 2)
        case "square-wave":
            share = (epsilon + math.expm1(-epsilon)) / (math.expm1(epsilon) - epsilon)
        case "auto":
            # No width above the grid has been the best one in any case, so the largest is the grid.
            widths = np.arange(1, grid + 1)
            noise = (grid + widths) / (grid + widths * math.exp(epsilon))
            return int(widths[_variance(0, grid, widths, noise).argmin()])
    return max(1, round(grid * share))


def _variance(
    symbols: npt.NDArray[np.number] | int, grid: int, width: npt.NDArray[np.integer] | int, noise: Floats | float
) -> Floats:
    """Return the variance of the unbiased estimate; it is the largest at both ends of the grid."""
    outputs = grid + width
    within = (noise * (outputs**2 - 1) + (1 - noise) * (width**2 - 1)) / 12
    between = noise * (1 - noise) * (symbols - grid / 2) ** 2
    return np.asarray((within + between) / (1 - noise) ** 2)
