"""Budgets of reports, in nats."""

from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

#: The largest epsilon of a report, and of all reports of a value.
MAX_EPSILON = 20.0
#: The least. Below it, a report says almost nothing, and floats cannot represent the probabilities of a mechanism.
MIN_EPSILON = 1e-6


def protects(epsilon: float) -> float:
    """Return an epsilon that protects somebody, and says something.

    Raises:
        ValueError: if it is more than ``MAX_EPSILON``, or less than ``MIN_EPSILON``.
    """
    if not epsilon >= MIN_EPSILON:
        raise ValueError(f"must be {MIN_EPSILON:g} or more: with less, a report says almost nothing")
    if not epsilon <= MAX_EPSILON:
        raise ValueError(
            f"must be {MAX_EPSILON:g} or less: with more, a reader can take each report for the truth, and above 30 the"
            " noise is finer than the draws of a device; choose identity for reports without privacy"
        )
    return epsilon


def covers(lasting: float, epsilon: float) -> float:
    """Return the budget of all reports of a value, which is at least that of one.

    Raises:
        ValueError: if it is less, or not a budget of a report.
    """
    # This comes first: the nearest budget is then the epsilon of the spec, and not the least of all.
    if not lasting >= epsilon:
        raise ValueError(f"must be at least epsilon, the budget of one of these reports ({epsilon:.16g})")
    return protects(lasting)


#: A privacy budget in nats, of one report or of all reports of a value.
Epsilon = Annotated[
    float,
    AfterValidator(protects),
    WithJsonSchema({"type": "number", "minimum": MIN_EPSILON, "maximum": MAX_EPSILON}),
]
