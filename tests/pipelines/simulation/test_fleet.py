"""Fleets and their summaries."""

import math
from typing import Any

import numpy as np
import pytest

from tests import build
from uldp.mechanisms.protocol.encoding import Held
from uldp.pipelines.simulation.fleet import Fleet, Summary
from uldp.pipelines.simulation.truth import Truth


def make_fleet(domain: int = 4, **settings: Any) -> Fleet:
    spec = build.spec(domain={"size": domain})
    truth = Truth(build.spec(domain={"size": 4}).variables, (Held(np.arange(4), np.full(4, -1)),), np.full(4, 0.25))
    base = {"users": 10, "seed": 0, "start_ms": 0, "duration_ms": 1000}
    return Fleet(spec, truth, **(base | settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"users": 0}, "users must be 1 or more, got 0"),
        ({"seed": -1}, "seed must be 0 or more, got -1"),
        ({"start_ms": -1}, "start_ms must be 0 or more, got -1"),
        ({"duration_ms": 0}, "duration_ms must be 1 or more, got 0"),
        ({"batch_size": 0}, "batch_size must be 1 or more, got 0"),
        ({"late": -0.1}, "rates must be 0 or more and sum to 1 or less, got {.*'late': -0.1"),
        ({"late": 0.5, "duplicates": 0.6}, "rates must be 0 or more and sum to 1 or less"),
        ({"malformed": math.nan}, "rates must be 0 or more and sum to 1 or less"),
        ({"domain": 5}, "the truth has another domain or other tags than the spec"),
    ],
)
def test_impossible_settings_are_errors(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_fleet(**settings)


def test_summaries_add_up() -> None:
    total = Summary(10, 2, 1, 3, 2, 1) + Summary(5, 1, 0, 1, 1, 2)
    assert total == Summary(15, 3, 1, 4, 3, 3)
    assert str(total) == (
        "15 reports, including 3 second copies, 3 damaged, 4 late within the allowed lateness and 3 later still"
    )
