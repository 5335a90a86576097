"""Each question has an answer under each mechanism, and a single value's sum is the value's own estimate."""

import numpy as np
import pytest

from tests.build import HOUR, START
from tests.mechanisms.test_unbiased_tables import EXAMPLES, window
from uldp.mechanisms.questions import (
    Period,
    Span,
    Version,
    compare,
    explain,
    groups_of,
    rows_of,
    shares_of,
    sums,
    table_answers,
)
from uldp.mechanisms.questions.smoothed import smoothed
from uldp.schemas.pane import Accounting

N = 400


def span_of(name: str, seed: int, version: Version | None = None) -> Span:
    version = version or Version(EXAMPLES[name].spec)
    cells = window(EXAMPLES[name], N, seed)
    apart = (0,) * len(version.decoder.reports(cells, N))
    start = START + seed * HOUR
    return Span(version, Period(start, start + HOUR, f"hour {seed}"), cells, (N,), apart, Accounting(N, N), ())


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_question_has_an_answer(name: str) -> None:
    before = span_of(name, 1)
    after = span_of(name, 2, before.version)
    estimator = before.version.decoder.estimators[0]
    tables = list(rows_of(table_answers("roll_up", before, before.tables(estimator))))
    assert tables
    for first, second in zip(shares_of(before), shares_of(after), strict=True):
        changes = list(rows_of(compare(first, second)))
        assert all(each.p_value is not None and 0 <= each.p_value <= 1 for each in changes)
        assert all(np.isfinite(each.estimate) for each in changes)
        if before.version.protocol.mechanism.memory:
            of_same = list(rows_of(compare(first, second, same_devices=True)))
            assert [each.estimate for each in of_same[:-1]] == [each.estimate for each in changes[:-1]]
        if first.names:
            said = [step.split(": ", 1)[0] for step in explain(first, 0, estimator)]
            assert said[0] == "counts"
            assert {"unbiased", "published", "flags", "privacy"} <= set(said)
        if first.pum is None or not first.labels:
            continue
        (one,) = rows_of(sums(first, groups_of(first, {"one": [0]})))
        if not first.pum.tags:
            assert (one.unbiased, one.stderr) == pytest.approx(
                (first.linear.values[0], np.sqrt(first.linear.variance[0])), rel=1e-6
            )
        assert one.low is not None
        assert one.high is not None
        assert one.low <= one.estimate <= one.high


@pytest.mark.parametrize("name", EXAMPLES)
def test_numbers_of_each_mechanism_are_smoothed(name: str) -> None:
    first = span_of(name, 1)
    spans = [first, *(span_of(name, seed, first.version) for seed in (2, 3))]
    found = list(rows_of(smoothed(spans)))
    assert len(found) == 3 * 2 * sum(len(shares.linear.values) for shares in shares_of(first))
    assert all(each.low is not None and each.high is not None and each.low <= each.high for each in found)
