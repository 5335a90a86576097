"""Answers about devices that keep their responses and are the same in all windows: what changes, and what is said."""

from dataclasses import replace

import numpy as np
import pytest

from tests import build
from tests.build import HOUR, START
from tests.mechanisms.questions.test_kept import KEPT, RUNS, WINDOWS, N, simulated
from uldp.mechanisms.questions.answer import rows_of
from uldp.mechanisms.questions.compare import compare
from uldp.mechanisms.questions.explain import explain
from uldp.mechanisms.questions.periods import Period
from uldp.mechanisms.questions.shares import shares_of
from uldp.mechanisms.questions.span import Span, Version
from uldp.mechanisms.questions.sums import Groups
from uldp.schemas.arrays import Counts
from uldp.schemas.errors import RequestError
from uldp.schemas.pane import Accounting

SETS = KEPT["ss with a permanent response"]
VERSION = Version(SETS.spec)


def of_run(windows: list[Counts], sizes: tuple[int, ...]) -> Span:
    cells: Counts = np.sum(windows, axis=0)
    n = sum(sizes)
    period = Period(START, START + len(sizes) * HOUR, "run")
    return Span(VERSION, period, cells, sizes, (0,), Accounting(n, n), ())


def test_answers_say_that_devices_may_be_the_same_and_what_they_have_spent() -> None:
    windows = simulated(SETS, runs=1)[0]
    span = of_run(windows, (N,) * WINDOWS)
    (shares,) = shares_of(span)
    assert {"may be the same in all windows" in each.assumed for each in rows_of(compare(shares, shares))} == {True}
    said = [step.split(": ", 1)[0] for step in explain(shares, 0, "empirical")]
    assert "kept" in said
    assert said.count("privacy") == 2


@pytest.mark.parametrize("what", ["values", pytest.param("sum", marks=pytest.mark.nightly), "whole"])
def test_changes_of_the_same_devices_have_less_error_which_covers(what: str) -> None:
    """Nobody's value changes: 95 % intervals hold 0, those of other devices too, and these are wider."""
    groups = Groups(("two",), np.eye(len(SETS.truth))[:, :2].sum(axis=1, keepdims=True)) if what == "sum" else None
    held: list[bool] = []
    widths: dict[bool, list[float]] = {True: [], False: []}
    for windows in simulated(SETS):
        before, after = (next(shares_of(of_run([window], (N,)))) for window in windows[:2])
        for same in (True, False):
            answers = list(rows_of(compare(before, after, groups, same_devices=same)))
            if what == "whole":
                held += [answers[-1].p_value > 0.05] if same else []  # type: ignore[operator]
                continue
            for each in answers[: len(SETS.truth)]:
                assert each.low is not None
                assert each.high is not None
                held += [each.low <= 0 <= each.high] if same else []
                widths[same].append(each.high - each.low)
    # The counts of 300 runs miss by chance as in a binomial law; those of five values depend on each other.
    assert 1 - 31 / RUNS <= np.mean(held) <= 0.985
    assert what == "whole" or np.mean(widths[True]) < 0.95 * np.mean(widths[False])


def test_devices_that_draw_anew_are_no_same_devices() -> None:
    windows = simulated(SETS, runs=1)[0]
    before, after = (of_run([window], (N,)) for window in windows[:2])
    of_other = next(shares_of(replace(after, version=Version(SETS.spec))))
    with pytest.raises(RequestError, match="draw new responses for each version"):
        list(compare(next(shares_of(before)), of_other, same_devices=True))
    version = Version(build.spec(mechanism={"name": "rr", "epsilon": 1}))
    shares = next(shares_of(replace(before, version=version, cells=np.array([40, 40, 40, 40, 40]))))
    with pytest.raises(RequestError, match="keep no responses"):
        list(compare(shares, shares, same_devices=True))
