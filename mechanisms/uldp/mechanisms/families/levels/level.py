"""Levels of privacy that a user chooses from, each with an epsilon of its own."""

import math
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from uldp.schemas.specs.epsilon import Epsilon, covers
from uldp.schemas.specs.strict import Strict

LevelName = Annotated[
    str, Field(pattern=r"^[a-z0-9_-]{1,64}$", description="1 to 64 of the characters a-z, 0-9, _ and -")
]


class Level(Strict):
    """A level of privacy.

    Attributes:
        epsilon: The budget of one report, in nats.
        lasting_epsilon: The budget of all reports of one value together; None if devices keep no response.
        share: The share of users to expect at this level, for simulations and forecasts.
    """

    epsilon: Epsilon
    lasting_epsilon: float | None = None
    share: float | None = Field(default=None, gt=0, le=1)

    @field_validator("lasting_epsilon")
    @classmethod
    def _covers_one_report(cls, lasting: float | None, info: ValidationInfo) -> float | None:
        # If epsilon is wrong, it is missing here, and the error about it is enough.
        return None if lasting is None else covers(lasting, info.data.get("epsilon", 0.0))


def check_levels(levels: Mapping[str, Level]) -> None:
    """Raise ValueError if levels contradict each other."""
    if len(levels) < 2:
        raise ValueError("give two levels or more; one level is the mechanism of itself")
    kept = [level.lasting_epsilon is not None for level in levels.values()]
    if any(kept) and not all(kept):
        raise ValueError("give each level a lasting_epsilon, or none: devices keep their responses, or do not")
    given = [level.share for level in levels.values() if level.share is not None]
    if given and len(given) < len(levels):
        raise ValueError("give each level a share, or none for equal shares")
    if given and abs(math.fsum(given) - 1) > 1e-9:
        raise ValueError(f"the shares must sum to 1, got {math.fsum(given):.10g}")
