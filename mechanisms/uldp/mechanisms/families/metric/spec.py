"""Noise by distance in specs."""

from collections.abc import Sequence
from typing import ClassVar, Literal, Self

from pydantic import Field

from uldp.mechanisms.families.metric.decoder import MatrixDecoder
from uldp.mechanisms.families.metric.randomizer import MetricMechanism
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Mask
from uldp.schemas.specs.domains import Tag
from uldp.schemas.specs.epsilon import Epsilon
from uldp.schemas.specs.mechanism_family import MechanismFamily, MisfitError, PrivateSpec
from uldp.schemas.specs.values import Values
from uldp.schemas.specs.variable import Variable


class MetricSpec(MechanismFamily):
    """Noise by distance: near values are protected from each other.

    Attributes:
        epsilon: The budget for each unit of distance, in nats.
        columns: The columns of the grid whose cells are the values, row by row; None if the values are in a line.
    """

    title = "noise by distance (truncated geometric on a line)"
    literature: ClassVar = {"metric": "d-privacy geo-indistinguishability CLDP SEM CSEM"}
    several_epsilons = True
    no_budget = "the epsilon of metric is for a unit of distance, and a budget is for all values"
    not_in_levels = "its epsilon is for a unit of distance; choose rr"
    not_ranked = "an epsilon for a unit of distance"
    estimators = ("auto", "empirical", "em")
    largest_size = 4096
    large_domains = ("has a probability for each pair of values", "oue")
    needs = PrivateSpec.needs
    refuses: ClassVar = {
        "lasting_epsilon": (
            "a device keeps no response of metric, because the noise on it would need a table of its own for each pair"
            " of values; remove lasting_epsilon, or choose rr"
        )
    }
    lasting_epsilon: ClassVar[None] = None
    share: ClassVar[None] = None

    name: Literal["metric"]
    epsilon: Epsilon
    columns: int | None = Field(default=None, ge=2, le=4096)

    def fitted(self, values: Values, sensitive: Mask, tags: Sequence[Tag]) -> Self:
        """See ``MechanismFamily``."""
        columns = self.columns or 1
        if values.size % columns:
            raise MisfitError(
                "columns",
                f"{columns} columns do not divide {values.size:,} values into full rows"
                f"{_divisor_near(values.size, columns)}",
            )
        return self

    def protocol(self, variable: Variable) -> LdpProtocol:
        """See ``MechanismFamily``."""
        mechanism = MetricMechanism(variable.size, self.epsilon, self.columns)
        return LdpProtocol(Pum.of(variable), mechanism, MatrixDecoder(mechanism, simultaneous=variable.simultaneous))


def _divisor_near(size: int, columns: int) -> str:
    """Return the remedy for a number of columns that leaves a row incomplete."""
    divisors = [number for number in range(2, size + 1) if not size % number]
    if divisors == [size]:  # a single row, which is the line that the values are without columns
        return "; remove columns, because no number does"
    return f"; the nearest number that does is {min(divisors, key=lambda number: abs(number - columns))}"
