"""Sums over groups of values: their variance is that of the sum, and not of its parts."""

from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from tests import build
from tests.build import HOUR, START
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.questions.answer import rows_of
from uldp.mechanisms.questions.periods import Period
from uldp.mechanisms.questions.shares import Shares, shares_of
from uldp.mechanisms.questions.span import Span, Version
from uldp.mechanisms.questions.sums import groups_of, sum_ends, sums
from uldp.schemas.arrays import Counts, Values
from uldp.schemas.pane import Accounting

#: Intervals of 95 % miss 10 of these, and more than 23 or none with a probability of 1e-4.
WINDOWS, N = 200, 150
FEWEST, MOST = 1 - 23 / WINDOWS, 1 - 1 / WINDOWS
TRUTH = np.array([0.35, 0.25, 0.2, 0.15, 0.05])
TAG = {"tags": [{"name": "home"}], "sensitive": [0, 1]}


def span_of(version: Version, cells: Counts, n: int, start: int = START) -> Span:
    return Span(version, Period(start, start + HOUR, "hour"), cells, (n,), (0,), Accounting(n, n), ())


def windows(version: Version, values: Values, n: int, seed: int) -> list[Counts]:
    """The cells of windows of n devices each, which hold these values."""
    rng, mechanism = default_rng(seed), version.protocol.mechanism
    payloads = mechanism.perturb(values, rng)
    return [as_dense(cells) for cells in mechanism.tally([payloads], np.arange(len(values)) // n, len(values) // n)]


def shares(version: Version, cells: Counts, n: int = N) -> Shares:
    (only,) = shares_of(span_of(version, cells, n))
    return only


def test_a_sum_of_randomized_responses_is_known_better_than_its_parts_say() -> None:
    version = Version(build.spec(domain={"size": 4}, mechanism={"name": "rr", "epsilon": 1}))
    of = shares(version, np.array([300, 260, 230, 210]), 1000)
    (sum_of,) = rows_of(sums(of, groups_of(of, {"three": [0, 1, 2]})))
    assert sum_of.stderr is not None
    assert sum_of.stderr < np.sqrt(of.linear.variance[:3].sum()) / 1.5
    # 1 less the share of the other value, which is exact.
    assert (sum_of.unbiased, sum_of.stderr) == pytest.approx((1 - of.linear.values[3], np.sqrt(of.linear.variance[3])))


def test_behind_a_tag_without_strength_all_users_or_none_may_be_members() -> None:
    version = Version(build.spec(**TAG))
    of = shares(version, np.array([30, 30, 20, 30, 20, 20]))
    (sum_of,) = rows_of(sums(of, groups_of(of, {"two": [2, 3]})))
    visible, hidden = (of.linear.interval(0.95, np.array([[0, 0, 1, 1, 0, tag]]).T) for tag in (0.0, 1.0))
    assert (sum_of.low, sum_of.high) == pytest.approx((visible[0][0], hidden[1][0]))
    assert "nothing" in sum_of.assumed


@pytest.mark.parametrize("strength", [None, 400])
def test_intervals_of_sums_with_tags_cover_the_truth(strength: int | None, tmp_path: Any) -> None:
    """A third of those with value 0 or 1 hide it; the background is drawn anew for each window."""
    rng = default_rng(5)
    behind = np.array([0.6, 0.4, 0, 0, 0])
    hides, values = rng.random(WINDOWS * N) < 1 / 3, rng.choice(5, WINDOWS * N, p=TRUTH)
    symbols = np.where(hides & (values < 2), 5, values)
    behind[:2] = TRUTH[:2] / TRUTH[:2].sum()
    truth, covered = TRUTH[[0, 2]].sum(), 0
    members = np.array([[1.0, 0, 1, 0, 0]]).T
    tag: dict[str, Any] = {"name": "home"}
    version = Version(build.spec(sensitive=[0, 1], tags=[tag]))
    cells_of = windows(version, symbols, N, 6)
    for at, cells in enumerate(cells_of):
        if strength is not None:
            drawn = rng.multinomial(strength // 4, behind)
            path = tmp_path / f"{at}.csv"
            path.write_text("value,weight\n" + "".join(f"{i},{4 * n}\n" for i, n in enumerate(drawn)))
            version = Version(_with(tmp_path, path.name))
        _, _, low, high = sum_ends(shares(version, cells), members)
        covered += bool(low[0] <= truth <= high[0])
    assert covered / WINDOWS >= FEWEST
    if strength is not None:
        assert covered / WINDOWS <= MOST + 0.01


def _with(folder: Any, name: str) -> Any:
    from uldp.schemas.specs.collection import CollectionSpec

    keys = build.MINIMAL | {"sensitive": [0, 1], "tags": [{"name": "home", "background": name}]}
    return CollectionSpec.parse(keys | {"limits": {"min_reports": 1}}, base=folder)
