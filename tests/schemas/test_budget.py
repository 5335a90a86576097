"""The key ``budget``: what a user may spend over time."""

import math
from datetime import timedelta
from typing import Any

import pytest

from tests import build
from uldp.schemas.specs.budget import Budget
from uldp.schemas.specs.specfile import SpecError


def test_a_spec_names_a_budget_and_a_period() -> None:
    spec = build.spec(budget={"epsilon": 4, "every": "30d"})
    assert spec.budget == Budget(epsilon=4, every=timedelta(days=30))
    assert str(spec.budget) == "epsilon 4 every 30d"
    assert build.spec().budget is None
    assert spec.device_digest == build.spec().device_digest


def test_a_record_keeps_it() -> None:
    budget = Budget(epsilon=0.5, every=timedelta(hours=36))
    assert budget.to_avro() == {"epsilon": 0.5, "every_ms": 36 * build.HOUR}
    assert Budget.from_avro(budget.to_avro()) == budget


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": {"epsilon": 4}}, "budget.every: missing; add it"),
        ({"budget": {"epsilon": 0, "every": "1d"}}, "budget.epsilon: must be more than 0 (got 0)"),
        ({"budget": {"epsilon": math.inf, "every": "1d"}}, "budget.epsilon: must be a finite number (got inf)"),
        ({"budget": {"epsilon": 4, "every": "0d"}}, "budget.every: must be more than 0 and at most 3650d (got '0d')"),
        ({"budget": {"epsilon": 4, "every": "9999d"}}, "must be more than 0 and at most 3650d (got '9999d')"),
        (
            {"budget": {"epsilon": 0.5, "every": "1d"}},
            "budget.epsilon must be 1 or more, which is mechanism.epsilon: a report spends this much",
        ),
        (
            {
                "budget": {"epsilon": 2, "every": "1d"},
                "mechanism": {"name": "rr", "epsilon": 1.0, "lasting_epsilon": 3.0},
            },
            "budget.epsilon must be 3 or more, which is mechanism.lasting_epsilon: two of a value spend this much",
        ),
        (
            {"budget": {"epsilon": 2, "every": "1d"}, "mechanism": {"name": "identity"}},
            "budget: identity gives no privacy, so nothing bounds what it spends; remove budget",
        ),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        build.spec(**changes)
    assert str(caught.value).endswith(message)
