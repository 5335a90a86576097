"""Two-sided geometric noise in specs."""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, Field

from uldp.mechanisms.encodings.number_encoding import NumberEncoding
from uldp.mechanisms.families.geometric.randomizer import Geometric
from uldp.mechanisms.kernels.intervals import outside_p_value
from uldp.mechanisms.numbers.outputs import NumberLaw, OutputsDecoder
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import IMPOSSIBLE_TAIL
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.specs.budget import protects
from uldp.schemas.specs.kinds import Number
from uldp.schemas.specs.mechanism_family import MechanismFamily, PrivateSpec
from uldp.schemas.specs.variable import Variable


class StepsDecoder(OutputsDecoder):
    """Estimates the mean of a number in [low, high] from the counts of noisy steps.

    The noise is symmetric, so the mean of the payloads is that of the symbols. Sums that are moved to an end move it by
    less than 10^-4 steps for each epsilon of a spec, and by less than 10^-8 for those from .1 to 10.
    """

    def __init__(self, mechanism: Geometric, low: float, high: float) -> None:
        self._mechanism = mechanism
        step, noise = (high - low) / mechanism.grid, mechanism.noise_variance
        numbers = low + step * (np.arange(mechanism.statistic_size, dtype=np.float64) - mechanism.margin)
        law = NumberLaw((high - low) / 2, step**2 * noise)
        least, largest = mechanism.ends(IMPOSSIBLE_TAIL)
        fact = "noise", f"standard deviation {step * math.sqrt(noise):.3g}, in steps of {step:.3g}"
        super().__init__(low, high, numbers, law, step=step, possible=slice(least, largest + 1), fact=fact)

    @cached_property
    def _of_ends(self) -> tuple[Floats, Floats]:
        """Shape (outputs,) each: the law of outputs of the first symbol, and that of the last."""
        first, last = (
            self._mechanism.law(np.eye(1, self._mechanism.size, end)[0]) for end in (0, self._mechanism.grid)
        )
        return first, last

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Test each output, and all from one to an end, with Bonferroni's bound, at every n.

        An output is the less probable the farther its step is from the symbol: the least for an end of the grid, and
        the most for the nearest symbol. All up to one are the most probable for the first symbol. So whatever users
        hold, these numbers of reports are stochastically between binomial ones.
        """
        self.check(cells, n)
        if n <= 0:
            return {}
        (first, last), margin = self._of_ends, self._mechanism.margin
        most = np.maximum(first, last)
        most[margin:-margin] = first[margin]
        of_each = outside_p_value(cells, n, np.minimum(first, last), most)
        least_up_to, most_up_to = (np.cumsum(law)[:-1].clip(0.0, 1.0) for law in (last, first))
        up_to = outside_p_value(np.cumsum(cells)[:-1], n, least_up_to, most_up_to)
        return {Flag.IMPROBABLE_COUNTS: min(1.0, 2 * min(of_each, up_to))}


#: The least epsilon. Below it, a table of noise has more than a million entries.
MIN_EPSILON = 0.01


def _has_a_table(epsilon: float) -> float:
    if not epsilon >= MIN_EPSILON:
        raise ValueError(f"must be {MIN_EPSILON} or more: with less, the table of the noise is too long; choose duchi")
    return epsilon


class GeometricSpec(MechanismFamily):
    """Two-sided geometric noise on a grid, the discrete Laplace mechanism, for the mean of a number.

    Attributes:
        epsilon: The budget of one report, in nats.
        share: In a record, the share of the reports about this attribute.
        bins: The number of steps of the grid.
    """

    title = "two-sided geometric noise (discrete Laplace)"
    literature: ClassVar = {"geometric": "Laplace"}
    not_ranked = "for numbers"
    domain_kind = "number"
    estimators = ("auto", "empirical")
    needs = PrivateSpec.needs
    refuses: ClassVar = {
        "lasting_epsilon": (
            "a device keeps no response of geometric, because no noise on it has the law of a smaller epsilon; remove"
            " lasting_epsilon, or choose duchi or block"
        )
    }
    lasting_epsilon: ClassVar[None] = None

    name: Literal["geometric"]
    epsilon: Annotated[float, AfterValidator(_has_a_table), AfterValidator(protects)]
    share: float | None = Field(default=None, gt=0, le=1)
    bins: int = Field(default=16, ge=1, le=64)

    def protocol(self, variable: Variable) -> LdpProtocol:
        number = variable.of_kind(Number)
        mechanism = Geometric(self.epsilon, self.bins)
        encoding = NumberEncoding(number.low, number.high, self.bins)
        return LdpProtocol(encoding, mechanism, StepsDecoder(mechanism, number.low, number.high))
