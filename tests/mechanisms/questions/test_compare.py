"""Differences between two spans: corrected p-values, the smallest change, and the whole distribution."""

from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import stats

from tests import build
from tests.mechanisms.questions.test_sums import TRUTH, shares, windows
from uldp.mechanisms.questions.answer import rows_of
from uldp.mechanisms.questions.compare import benjamini_hochberg, compare, holm, smallest_change
from uldp.mechanisms.questions.span import Version


def test_a_change_of_the_named_size_is_found_in_four_of_five_cases() -> None:
    """One value of five changes by what is named; Holm's first step is Bonferroni's."""
    version = Version(build.spec(mechanism={"name": "oue", "epsilon": 1}))
    n, runs = 2000, 300
    before = windows(version, default_rng(1).choice(5, runs * n, p=TRUTH), n, 3)
    stderr = np.sqrt(2 * shares(version, before[0], n).linear.variance.mean())
    change = float(smallest_change(np.full(5, stderr))[0])
    moved = TRUTH - change / 4
    moved[4] = TRUTH[4] + change
    after = windows(version, default_rng(2).choice(5, runs * n, p=moved), n, 4)
    pairs = zip(before, after, strict=True)
    found = [
        next(each for each in rows_of(compare(shares(version, one, n), shares(version, other, n))) if each.label == "4")
        for one, other in pairs
    ]
    power = np.mean([each.p_adjusted is not None and each.p_adjusted <= 0.05 for each in found])
    assert 0.8 - 3.3 * np.sqrt(0.16 / runs) <= power <= 0.8 + 3.3 * np.sqrt(0.16 / runs)


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
def test_corrections_are_those_of_scipy_or_of_the_paper(correct: Any) -> None:
    p_values = default_rng(4).random(40) ** 3
    if correct is benjamini_hochberg:
        expected = stats.false_discovery_control(p_values)
    else:  # by the definition: the largest of the steps up to each
        order = np.argsort(p_values)
        expected = np.empty(40)
        for rank, at in enumerate(order):
            expected[at] = min(1.0, max((40 - i) * p_values[order[i]] for i in range(rank + 1)))
    assert correct(p_values) == pytest.approx(expected)
