"""Two-sided geometric noise in specs."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from uldp.mechanisms.encodings.number_encoding import NumberEncoding
from uldp.mechanisms.families.geometric.decoder import GeometricDecoder
from uldp.mechanisms.families.geometric.randomizer import Geometric
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.specs.epsilon import protects
from uldp.schemas.specs.kinds import Number
from uldp.schemas.specs.mechanism_family import MechanismFamily, PrivateSpec
from uldp.schemas.specs.variable import Variable

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
        """See ``MechanismFamily``."""
        number = variable.of_kind(Number)
        mechanism = Geometric(self.epsilon, self.bins)
        encoding = NumberEncoding(number.low, number.high, self.bins)
        return LdpProtocol(encoding, mechanism, GeometricDecoder(mechanism, number.low, number.high))
