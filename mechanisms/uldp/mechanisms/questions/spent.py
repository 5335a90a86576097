"""What a user spends who reports in several windows."""

from uldp.schemas.specs.budget import Budget
from uldp.schemas.specs.durations import milliseconds


def spent(epsilon: float | None, lasting: float | None, budget: Budget | None, reports: int, span: int) -> float | None:
    """Return the most that a user spends on reports of one value in several windows, in nats; None without privacy.

    Args:
        epsilon: The budget of one report.
        lasting: The budget of two or more reports of one value, if devices keep responses.
        budget: What devices may spend in a period, over all collections.
        reports: The number of windows in which the user reports.
        span: The time from the first window's start to the last window's end, in milliseconds.
    """
    if epsilon is None:
        return None
    alone = epsilon * reports if lasting is None else epsilon if reports == 1 else lasting
    if budget is None:
        return alone
    return min(alone, budget.epsilon * -(-span // milliseconds(budget.every)))
