"""Duchi et al.'s mechanism in specs."""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np

from uldp.mechanisms.assembly import kept
from uldp.mechanisms.encodings.number_encoding import NumberEncoding, check_range
from uldp.mechanisms.families.duchi.randomizer import GRID, Duchi, flip_probability
from uldp.mechanisms.kernels.intervals import lower_tail
from uldp.mechanisms.numbers.outputs import NumberLaw, OutputsDecoder
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.arrays import Counts
from uldp.schemas.flags import Flag
from uldp.schemas.specs.kinds import Number
from uldp.schemas.specs.mechanism_family import PrivateSpec
from uldp.schemas.specs.variable import Variable


class MeanDecoder(OutputsDecoder):
    """Estimates the mean of a number in [low, high] from the zeros and ones of ``Duchi``.

    Ones come with probability m = f + (1 - 2f) u, where u is the place of the mean between low and high. So m-hat, the
    share of ones, gives the mean without bias (65), and an exact interval for m gives one for the mean:

        mean-hat = (low + high)/2 + (m-hat - 1/2) (high - low)/(1 - 2f)      Var = m (1 - m)/n ((high - low)/(1 - 2f))^2
    """

    def __init__(self, low: float, high: float, epsilon: float, lasting: float | None = None) -> None:
        check_range(low, high)
        f, half = flip_probability(epsilon), (high - low) / 2
        # tanh(epsilon / 2) is 1 - 2f, without the cancellation at small epsilon.
        numbers = low + half + np.array([-half, half]) / math.tanh(epsilon / 2)
        response = None if lasting is None else _law(half, lasting)
        ones = f"probability {f:.6g} at {low:g}, rising to {1 - f:.6g} at {high:g}"
        super().__init__(low, high, numbers, _law(half, epsilon, numbers.tolist(), response), fact=("ones", ones))
        self.flip_probability = f

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Return how probable it is that so few zeros, or so few ones, are among n honest reports.

        The mechanism's noise alone gives a zero, and a one, with probability f in each report, whatever its number. So
        under every distribution, and also for given numbers, the number of either is at least a binomial one of n and f
        (stochastically). The bound holds at every n, with a factor 2 for its two sides. The test cannot detect forged
        reports that leave the share of ones between f and 1 - f.
        """
        self.check(cells, n)
        if n <= 0:
            return {}
        return {Flag.IMPROBABLE_COUNTS: min(1.0, 2 * lower_tail(int(cells.min()), n, self.flip_probability))}


def _law(
    half: float, epsilon: float, ends: Sequence[float] = (math.nan, math.nan), response: NumberLaw | None = None
) -> NumberLaw:
    """Return the law of reports that count as h / (1 - 2f) or -h / (1 - 2f), about the middle of the range."""
    # Their square less h^2, without cancellation.
    noise = (half / math.sinh(epsilon / 2)) ** 2
    return NumberLaw(half, noise, -1.0, (-2 * (noise + half**2), 2.0), ends=(ends[0], ends[1]), response=response)


class DuchiSpec(PrivateSpec):
    """Duchi et al.'s mechanism for the mean of a number, with reports of one bit."""

    title = "Duchi et al.’s mechanism for a mean"
    literature: ClassVar = {"duchi": "1BitMean", "duchi with lasting_epsilon": "α-rounding"}
    not_ranked = "for numbers"
    domain_kind = "number"
    estimators = ("auto", "empirical")

    name: Literal["duchi"]

    def protocol(self, variable: Variable) -> LdpProtocol:
        number = variable.of_kind(Number)
        # With memory, of the two ends alone, because the device keeps its rounding: so most changes need no new
        # response.
        grid = GRID if self.lasting_epsilon is None else 1
        mechanism = kept(self, Duchi(self.epsilon, grid), lambda epsilon: Duchi(epsilon, grid))
        encoding = NumberEncoding(number.low, number.high, grid)
        decoder = MeanDecoder(number.low, number.high, self.epsilon, self.lasting_epsilon)
        return LdpProtocol(encoding, mechanism, decoder)
