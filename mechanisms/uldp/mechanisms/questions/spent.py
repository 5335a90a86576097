"""What a user spends who reports in several windows."""

from typing import NamedTuple

from uldp.schemas.specs.budget import Budget
from uldp.schemas.specs.durations import milliseconds

# Numbers of nats from here on are written without decimals.
_WHOLE = 1_000


class Spent(NamedTuple):
    """The most that a user spends on reports in several windows, in nats.

    Attributes:
        whatever: Whatever the user's values are in these windows.
        one_value: If the value stays as it is in all of them. It is less where devices keep a response to each value.
    """

    whatever: float
    one_value: float

    def text(self) -> str:
        """Say both numbers, or the one if they are equal."""
        if self.whatever == self.one_value:
            return f"epsilon {_nats(self.whatever)} at most"
        stays, changes = _nats(self.one_value), _nats(self.whatever)
        return f"epsilon {stays} at most on a value that stays, {changes} on values that change"


def _nats(number: float) -> str:
    return f"{number:.4g}" if number < _WHOLE else f"{number:,.0f}"


def spent(epsilon: float | None, lasting: float | None, budget: Budget | None, reports: int, span: int) -> Spent | None:
    """Return the most that a user spends on reports in several windows; None without privacy.

    Values of one user add up, and a value spends ``epsilon`` with one report, and ``lasting`` with two or more. So the
    most is spent by another value in each window, or if ``lasting`` is more than twice epsilon, in every second one.
    A budget does not bound that: devices have paid for the responses to values of before, and send them again for free.

    Args:
        lasting: The budget of two or more reports of one value, if devices keep responses.
        reports: The number of windows in which the user reports.
        span: The time from the first window's start to the last window's end, in milliseconds.
    """
    if epsilon is None:
        return None
    each = epsilon * reports
    if lasting is not None:
        twice, once = divmod(reports, 2)
        return Spent(max(each, twice * lasting + once * epsilon), epsilon if reports == 1 else lasting)
    if budget is not None:
        each = min(each, budget.epsilon * -(-span // milliseconds(budget.every)))
    return Spent(each, each)
