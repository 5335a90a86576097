"""What reports in several windows spend: epsilon each, the lasting budget of each value, or what a budget allows."""

import itertools
import math
from collections import Counter
from datetime import timedelta

import pytest

from uldp.mechanisms.questions.span import Spent, spent
from uldp.schemas.specs.budget import Budget

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("epsilon", "lasting", "budget", "reports", "span", "most"),
    [
        (None, None, None, 3, 3 * HOUR, None),
        (0.5, None, None, 3, 3 * HOUR, 1.5),
        (0.5, None, Budget(epsilon=1.0, every=timedelta(days=1)), 48, 48 * HOUR, 2.0),
        (0.5, None, Budget(epsilon=1.0, every=timedelta(days=1)), 49, 49 * HOUR, 3.0),
        (0.5, None, Budget(epsilon=1.0, every=timedelta(days=1)), 1, HOUR, 0.5),
    ],
)
def test_a_user_spends(
    epsilon: float | None, lasting: float | None, budget: Budget | None, reports: int, span: int, most: float | None
) -> None:
    assert spent(epsilon, lasting, budget, reports, span) == (None if most is None else Spent(most, most))


@pytest.mark.parametrize("budget", [None, Budget(epsilon=4.0, every=timedelta(days=1))])
@pytest.mark.parametrize(("epsilon", "lasting"), [(1.0, 1.0), (1.0, 1.5), (1.0, 2.0), (0.5, 3.0), (2.0, 3.0)])
@pytest.mark.parametrize("reports", [1, 2, 3, 4, 5, 6])
def test_values_that_change_spend_the_most_of_all_orders_of_values(
    reports: int, epsilon: float, lasting: float, budget: Budget | None
) -> None:
    found = spent(epsilon, lasting, budget, reports, reports * HOUR)
    assert found is not None
    sums = {
        values: sum(epsilon if times == 1 else lasting for times in Counter(values).values())
        for values in itertools.product(range(reports), repeat=reports)
    }
    assert found.whatever == pytest.approx(max(sums.values()))
    assert found.one_value == sums[(0,) * reports]


def test_both_numbers_are_said_where_they_differ() -> None:
    many = spent(0.5, 3.0, None, 8_760, 8_760 * HOUR)
    assert many is not None
    assert many.text() == "epsilon 3 at most on a value that stays, 13,140 on values that change"
    once = spent(0.5, 3.0, None, 1, HOUR)
    assert once is not None
    assert once.text() == "epsilon 0.5 at most"


@pytest.mark.parametrize(("epsilon", "lasting"), [(1.0, 3.0), (2.6, 3.0)])
def test_a_value_that_changes_once_spends_no_more_than_is_said(epsilon: float, lasting: float) -> None:
    """Two reports of one value and two of another: the worst odds of two bits that a device keeps, and flips again."""
    kept, once = (1 / (1 + math.exp(nats)) for nats in (lasting, epsilon))
    again = (once - kept) / (1 - 2 * kept)

    def law(value: int, reports: tuple[int, ...]) -> float:
        return sum(
            (kept if response != value else 1 - kept)
            * math.prod(again if report != response else 1 - again for report in reports)
            for response in (0, 1)
        )

    worst = max(math.log(law(0, both) / law(1, both)) for both in itertools.product((0, 1), repeat=2))
    found = spent(epsilon, lasting, None, 4, 4 * HOUR)
    assert found is not None
    assert worst < found.one_value < 2 * worst <= found.whatever
