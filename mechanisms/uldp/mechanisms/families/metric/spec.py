"""Noise by distance in specs."""

from collections.abc import Sequence
from typing import ClassVar, Literal, Self

from pydantic import Field

from uldp.mechanisms.families.metric.decoder import MatrixDecoder
from uldp.mechanisms.families.metric.randomizer import MetricMechanism
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Mask
from uldp.schemas.specs.budget import Epsilon
from uldp.schemas.specs.domains import Tag
from uldp.schemas.specs.mechanism_family import MechanismFamily, MisfitError, PrivateSpec
from uldp.schemas.specs.values import Values, require_full_rows
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
        try:
            require_full_rows(values.size, self.columns or 1)
        except ValueError as error:
            raise MisfitError("columns", str(error)) from error
        if values.columns not in (None, self.columns):
            distances = "on a line" if self.columns is None else f"on a grid of {self.columns} columns"
            raise MisfitError(
                "columns",
                f"distances are those {distances}, but the domain is a grid of {values.columns} columns; write"
                f" columns: {values.columns} in both, or remove columns from domain",
            )
        return self

    def protocol(self, variable: Variable) -> LdpProtocol:
        mechanism = MetricMechanism(variable.size, self.epsilon, self.columns)
        return LdpProtocol(Pum.of(variable), mechanism, MatrixDecoder(mechanism, simultaneous=variable.simultaneous))
