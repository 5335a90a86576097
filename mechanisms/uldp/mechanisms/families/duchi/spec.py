"""Duchi et al.’s mechanism in specs, alone and as one of two.

Source of the latter: Wang et al., "Collecting and Analyzing Multidimensional Data with Local Differential Privacy"
(ICDE 2019), for the hybrid mechanism HM, which draws between the piecewise mechanism and that of Duchi et al. Here
``Block`` with its best width is in place of the piecewise mechanism, and a report says which of the two has made it.

Of a number x in [-1, 1], a report of ``Duchi`` has the variance C - x^2, where C = ((E+1)/(E-1))^2, and one of
``Block`` a + b x^2, where b = noise/(1 - noise). If the share of ``Duchi`` is b/(1 + b), which is the noise itself, the
mean variance over both is the same for every x: (a + b C)/(1 + b). No other shares and weights have a smaller one at
the worst x, as long as both variances are equal somewhere: there, 0 <= x^2 = (C - a)/(1 + b) <= 1.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, cast

import numpy as np
from pydantic import Field

from uldp.mechanisms.assembly import kept
from uldp.mechanisms.decoders.strata_decoder import PartsDecoder
from uldp.mechanisms.encodings.number_encoding import NumberEncoding, check_range
from uldp.mechanisms.encodings.strata_encoding import StrataEncoding, StratumSource
from uldp.mechanisms.families.block.randomizer import Block
from uldp.mechanisms.families.block.spec import BlockSpec, NumberSpec
from uldp.mechanisms.families.duchi.randomizer import GRID, Duchi, flip_probability
from uldp.mechanisms.kernels.hashing import MOST_BUCKETS
from uldp.mechanisms.kernels.intervals import lower_tail
from uldp.mechanisms.laws.estimate import Estimate, weighted
from uldp.mechanisms.numbers.outputs import NumberDecoder, NumberLaw, OutputsDecoder
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.randomizers.strata import Strata, strata_of
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.specs.kinds import Number
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
        """Test whether zeros, or ones, are too few: noise alone gives each with probability f, whatever the numbers.

        So the number of either is stochastically at least a binomial one of n and f, at every n; a factor 2 is for both
        sides. Forged reports that leave the share of ones between f and 1 - f are not seen.
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


class DuchiSpec(NumberSpec):
    """Duchi et al.'s mechanism for the mean of a number, with reports of one bit."""

    title = "Duchi et al.’s mechanism for a mean"
    literature: ClassVar = {"duchi": "1BitMean", "duchi with lasting_epsilon": "α-rounding"}

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


class HybridDecoder(NumberDecoder, PartsDecoder[NumberDecoder]):
    """Estimates the mean from ``Duchi`` and ``Block``, pooled by their variances where these are equal, the worst."""

    def __init__(self, arms: Sequence[NumberDecoder], strata: Strata) -> None:
        super().__init__(("duchi", "block"), arms, strata)
        self.low, self.high = arms[0].low, arms[0].high

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        arms = [arm for arm in self.estimates(cells, n, repeats) if arm]
        return weighted(arms, np.array([arm.n / n for arm in arms]))

    def forecast(self, n: int) -> Floats:
        variances = [share * arm.forecast(n) ** 2 for arm, share in zip(self.decoders, self.shares, strict=True)]
        return np.asarray(np.sqrt(np.sum(variances, axis=0)))

    @property
    def weight(self) -> float:
        return max(arm.weight for arm in self.decoders)

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        bit, block = self.shares
        yield "arms", f"duchi with probability {bit:.6g}, block with {block:.6g}"
        yield next(self.decoders[1].describe(n, estimator))
        yield from super().describe(n, estimator)


#: With a smaller share of either mechanism, the other one alone is as good.
_LEAST_SHARE = 0.01


class HybridSpec(NumberSpec):
    """A device draws whether it reports a number by ``duchi`` or by ``block``.

    Attributes:
        bins: The number of bins of the range, of ``block``.
    """

    title = "Duchi et al.’s mechanism or a symbol near the number, as the device draws"
    literature: ClassVar = {"hybrid": "HM"}

    name: Literal["hybrid"]
    bins: int = Field(default=1024, ge=2, le=MOST_BUCKETS)

    def protocol(self, variable: Variable) -> LdpProtocol:
        share = self._share(Block(self.epsilon, self.bins))
        budgets: dict[str, Any] = {"epsilon": self.epsilon, "lasting_epsilon": self.lasting_epsilon}
        bit, block = DuchiSpec(name="duchi", **budgets), BlockSpec(name="block", bins=self.bins, **budgets)
        arms = [bit.protocol(variable), block.protocol(variable)]
        strata = strata_of([arm.mechanism for arm in arms], [share, 1 - share], "arm")
        sources = [StratumSource(arm.encoding, (0,)) for arm in arms]
        decoders = [cast(NumberDecoder, arm.decoder) for arm in arms]
        return LdpProtocol(StrataEncoding(sources, strata), strata, HybridDecoder(decoders, strata))

    def _share(self, block: Block) -> float:
        """Return the share of devices that report by ``Duchi``; ValueError if one of the two alone is as good."""
        middle = 4 * float(block.variance(np.array(block.grid / 2))) / block.grid**2
        bit = math.tanh(self.epsilon / 2) ** -2.0
        if bit < middle or block.noise > 1 - _LEAST_SHARE:
            raise ValueError(f"epsilon: at {self.epsilon:g}, duchi alone has no more variance; write name: duchi")
        if block.noise < _LEAST_SHARE:
            raise ValueError(f"epsilon: at {self.epsilon:g}, block alone has as little variance; write name: block")
        return block.noise
