"""The budget of a report in a spec."""

from typing import Annotated

from pydantic import AfterValidator, Field

#: The largest epsilon of a report, and of all reports of a value.
MAX_EPSILON = 20.0


def protects(epsilon: float) -> float:
    """Return epsilon, if it protects.

    Raises:
        ValueError: if it is too large.
    """
    if not epsilon <= MAX_EPSILON:
        raise ValueError(
            f"must be {MAX_EPSILON:g} or less: with more, a reader can take each report for the truth, and above 30 the"
            " noise is finer than the draws of a device; choose identity for reports without privacy"
        )
    return epsilon


#: A privacy budget in nats, of one report or of all reports of a value.
Epsilon = Annotated[float, Field(gt=0), AfterValidator(protects)]
