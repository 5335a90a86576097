"""Budgets in nats: of a report, and of a user over time, for the reports of all collections together."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, WithJsonSchema, field_validator

from uldp.schemas.specs.durations import Duration, format_duration, milliseconds
from uldp.schemas.specs.strict import Strict

#: The largest epsilon of a report, and of all reports of a value.
MAX_EPSILON = 20.0
#: The least. Below it, a report says almost nothing, and floats cannot represent the probabilities of a mechanism.
MIN_EPSILON = 1e-6


def protects(epsilon: float) -> float:
    """Return an epsilon that says something, and protects; ValueError outside of ``MIN_EPSILON`` to ``MAX_EPSILON``."""
    if not epsilon >= MIN_EPSILON:
        raise ValueError(f"must be {MIN_EPSILON:g} or more: with less, a report says almost nothing")
    if not epsilon <= MAX_EPSILON:
        raise ValueError(
            f"must be {MAX_EPSILON:g} or less: with more, a reader can take each report for the truth, and above 30 the"
            " noise is finer than the draws of a device; choose identity for reports without privacy"
        )
    return epsilon


def covers(lasting: float, epsilon: float) -> float:
    """Return the budget of all reports of a value; ValueError if it is less than of one, or no budget of a report."""
    # This comes first: the nearest budget is then the epsilon of the spec, and not the least of all.
    if not lasting >= epsilon:
        raise ValueError(f"must be at least epsilon, the budget of one of these reports ({epsilon:.16g})")
    return protects(lasting)


#: A privacy budget in nats, of one report or of all reports of a value.
Epsilon = Annotated[
    float, AfterValidator(protects), WithJsonSchema({"type": "number", "minimum": MIN_EPSILON, "maximum": MAX_EPSILON})
]


#: The longest period of a budget: ten years.
MAX_PERIOD = timedelta(days=3650)


class Budget(Strict):
    """A budget of a user; devices refuse a report that would exceed it.

    Attributes:
        epsilon: What the user may spend, in nats.
        every: The length of the rolling period in which the user may spend it.
    """

    epsilon: float = Field(gt=0, allow_inf_nan=False)
    every: Duration

    @field_validator("every")
    @classmethod
    def _is_a_period(cls, every: timedelta) -> timedelta:
        if not timedelta(0) < every <= MAX_PERIOD:
            raise ValueError(f"must be more than 0 and at most {format_duration(MAX_PERIOD)}")
        return every

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:g} every {format_duration(self.every)}"

    def to_avro(self) -> dict[str, Any]:
        """Return the value that ``estimate.avsc`` describes."""
        return {"epsilon": self.epsilon, "every_ms": milliseconds(self.every)}

    @classmethod
    def from_avro(cls, value: Mapping[str, Any]) -> Self:
        """Read a value that ``to_avro`` returned; ValueError if the numbers are no budget."""
        return cls(epsilon=value["epsilon"], every=timedelta(milliseconds=value["every_ms"]))
