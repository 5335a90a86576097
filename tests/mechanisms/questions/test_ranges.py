"""Ranges and quantiles at ends and levels that no spec names: their errors are those of the levels of a tree."""

from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from tests import build
from tests.build import HOUR, START
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.questions import (
    Period,
    Shares,
    Span,
    Version,
    quantiles,
    range_of,
    ranges,
    rows_of,
    shares_of,
    table_answers,
)
from uldp.schemas.arrays import Floats
from uldp.schemas.errors import RequestError
from uldp.schemas.pane import Accounting

NUMBER = {"number": {"low": 0, "high": 80}}
TREE: dict[str, Any] = {"name": "tree", "epsilon": 2, "bins": 16}


def of_numbers(numbers: Floats, sizes: int = 1, **mechanism: Any) -> Shares:
    """The counts of numbers in [0, 80], in as many windows."""
    version, n = Version(build.spec(domain=NUMBER, mechanism=mechanism)), len(numbers)
    payloads = version.protocol.perturb([Held(numbers, np.full(n, -1))], default_rng(1))
    cells, period = as_dense(version.protocol.mechanism.statistic(payloads)), Period(START, START + HOUR, "hour")
    span = Span(version, period, cells, (n // sizes,) * sizes, (0,), Accounting(n, n), ())
    return next(shares_of(span))


def drawn(n: int = 4_000) -> Floats:
    return 80 * default_rng(3).beta(2, 5, n)


@pytest.mark.parametrize("name", ["tree", "block"])
def test_ranges_and_quantiles_agree_with_the_tables(name: str) -> None:
    numbers = of_numbers(drawn(), **TREE | {"name": name})
    estimator = "ems" if name == "block" else "auto"
    answers = table_answers("roll_up", numbers.span, numbers.span.tables(estimator))
    published = {each.label: each for each in rows_of(answers)}
    for answer in rows_of(quantiles(numbers, [0.5, 0.1], "auto")):
        beside = published[answer.label]
        assert (answer.estimate, answer.low, answer.high) == pytest.approx((beside.estimate, beside.low, beside.high))
    wanted = [range_of(numbers, text) for text in ("0:80", "0:40", "40:80")]
    whole, half, rest = rows_of(ranges(numbers, wanted, "auto"))
    assert whole.estimate == pytest.approx(1.0)
    assert half.estimate + rest.estimate == pytest.approx(1.0)
    for each in (whole, half, rest):
        assert each.low is not None
        assert each.high is not None
        assert 0 <= each.low <= each.estimate + 1e-12
        assert each.estimate <= each.high + 1e-12 <= 1 + 2e-12


def test_devices_that_keep_responses_make_ranges_of_several_windows_wider() -> None:
    one, four = (of_numbers(drawn(), sizes, **TREE, lasting_epsilon=3) for sizes in (1, 4))
    (alone,), (together,) = (list(rows_of(ranges(each, [range_of(each, "10:45")], "auto"))) for each in (one, four))
    assert alone.stderr is not None
    assert together.stderr is not None
    assert 1.2 * alone.stderr < together.stderr < 2 * alone.stderr  # 2 if reports were the responses


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("10", "write LOW:HIGH"),
        ("10:42", "'42' is inside of a bin; the nearest edge of the 16 bins is 40"),
        ("45:10", "a range goes from a lower to a higher number"),
        ("10:90", "'90' is outside of the range 0 to 80"),
    ],
)
def test_what_is_no_range_is_refused(text: str, why: str) -> None:
    with pytest.raises(RequestError, match=f"--range '{text}': {why}"):
        range_of(of_numbers(drawn(100), **TREE), text)
