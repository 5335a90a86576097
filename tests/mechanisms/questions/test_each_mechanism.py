"""Each question has an answer under each mechanism, and a single value's sum is the value's own estimate."""

import numpy as np
import pytest

from tests.build import HOUR, START
from tests.mechanisms.test_unbiased_tables import EXAMPLES, window
from uldp.mechanisms.questions import Period, Span, Version, compare, explain, groups_of, shares_of, sums, table_answers
from uldp.schemas.pane import Accounting

N = 400


def span_of(name: str, seed: int) -> Span:
    version = Version(EXAMPLES[name].spec)
    cells = window(EXAMPLES[name], N, seed)
    apart = (0,) * len(version.decoder.reports(cells, N))
    return Span(version, Period(START, START + HOUR, "hour"), cells, (N,), apart, Accounting(N, N), ())


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_question_has_an_answer(name: str) -> None:
    before, after = span_of(name, 1), span_of(name, 2)
    estimator = before.version.decoder.estimators[0]
    tables = list(table_answers("roll_up", before, estimator))
    assert tables
    for first, second in zip(shares_of(before), shares_of(after), strict=True):
        changes = list(compare(first, second))
        assert all(each.p_value is not None and 0 <= each.p_value <= 1 for each in changes)
        assert all(np.isfinite(each.estimate) for each in changes)
        if first.pum is None or not first.labels:
            continue
        (one,) = sums(first, groups_of(first, {"one": [0]}))
        if not first.pum.tags:
            assert (one.unbiased, one.stderr) == pytest.approx(
                (first.linear.values[0], np.sqrt(first.linear.variance[0])), rel=1e-6
            )
        assert one.low is not None
        assert one.high is not None
        assert one.low <= one.estimate <= one.high
        said = [step.split(": ", 1)[0] for step in explain(first, 0, estimator)]
        assert said[0] == "counts"
        assert {"unbiased", "published", "flags", "privacy"} <= set(said)
