"""What reports in several windows spend: epsilon each, the lasting budget, or what a budget lets devices spend."""

from datetime import timedelta

import pytest

from uldp.mechanisms.questions.spent import spent
from uldp.schemas.specs.budget import Budget

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("epsilon", "lasting", "budget", "reports", "span", "most"),
    [
        (None, None, None, 3, 3 * HOUR, None),
        (0.5, None, None, 3, 3 * HOUR, 1.5),
        (0.5, 2.0, None, 1, HOUR, 0.5),
        (0.5, 2.0, None, 2, 2 * HOUR, 2.0),
        (0.5, 2.0, None, 8_760, 8_760 * HOUR, 2.0),
        (0.5, None, Budget(epsilon=1.0, every=timedelta(days=1)), 48, 48 * HOUR, 2.0),
        (0.5, None, Budget(epsilon=1.0, every=timedelta(days=1)), 49, 49 * HOUR, 3.0),
        (0.5, None, Budget(epsilon=1.0, every=timedelta(days=1)), 1, HOUR, 0.5),
    ],
)
def test_a_user_spends(
    epsilon: float | None, lasting: float | None, budget: Budget | None, reports: int, span: int, most: float | None
) -> None:
    assert spent(epsilon, lasting, budget, reports, span) == most
