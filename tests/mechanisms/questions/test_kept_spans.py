"""Roll-ups and sums of devices that keep their responses and are the same in all windows: intervals cover the truth."""

import numpy as np
import pytest

from tests.build import HOUR, START
from tests.mechanisms.questions.test_kept import KEPT, RUNS, WINDOWS, N, simulated
from uldp.mechanisms.questions.compare import compare
from uldp.mechanisms.questions.explain import explain
from uldp.mechanisms.questions.periods import Period
from uldp.mechanisms.questions.shares import shares_of
from uldp.mechanisms.questions.span import Span, Version
from uldp.mechanisms.questions.sums import sum_ends
from uldp.schemas.arrays import Counts
from uldp.schemas.pane import Accounting

SETS = KEPT["ss with a permanent response"]


def of_run(windows: list[Counts], sizes: tuple[int, ...]) -> Span:
    cells: Counts = np.sum(windows, axis=0)
    n = sum(sizes)
    period = Period(START, START + len(sizes) * HOUR, "run")
    return Span(Version(SETS.spec), period, cells, sizes, (0,), Accounting(n, n), ())


@pytest.mark.parametrize("what", ["tables", "sums"])
def test_intervals_cover_where_those_of_as_many_devices_do_not(what: str) -> None:
    members = np.zeros((len(SETS.truth), 1))
    members[:2] = 1
    covered: list[float] = []
    narrow: list[float] = []
    for windows in simulated(SETS):
        span, alone = of_run(windows, (N,) * WINDOWS), of_run(windows, (N * WINDOWS,))
        if what == "tables":
            for found, each in ((covered, span), (narrow, alone)):
                (table,) = each.tables("empirical")
                assert table.low is not None
                assert table.high is not None
                found.append(float(((table.low <= SETS.truth) & (SETS.truth <= table.high)).mean()))
        else:
            truth = SETS.truth[:2].sum()
            for found, each in ((covered, span), (narrow, alone)):
                (shares,) = shares_of(each)
                _, low, high = sum_ends(shares, members)
                found.append(float(low[0] <= truth <= high[0]))
    # 400 runs with one sum each: 20 miss on average, and more than 38 with a probability of 1e-4.
    assert np.mean(covered) >= 1 - 38 / RUNS
    assert np.mean(narrow) < np.mean(covered) - 0.03


def test_answers_say_that_devices_may_be_the_same_and_what_they_have_spent() -> None:
    windows = simulated(SETS, runs=1)[0]
    span = of_run(windows, (N,) * WINDOWS)
    (shares,) = shares_of(span)
    assert {"may be the same in all windows" in each.assumed for each in compare(shares, shares)} == {True}
    said = [step.split(": ", 1)[0] for step in explain(shares, 0, "empirical")]
    assert "kept" in said
    assert said.count("privacy") == 2
