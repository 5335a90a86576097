"""The budget of a user over time: what the reports of all collections may spend together in any period of a length."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Self

from pydantic import Field, field_validator

from uldp.schemas.specs.durations import Duration, format_duration, milliseconds
from uldp.schemas.specs.strict import Strict

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
