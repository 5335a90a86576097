"""Versions of a collection over one time give one estimate: pooled by their errors, and each report in one number."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.build import HOUR, START
from uldp.mechanisms.pooling.pooled_tables import VersionCounts, pooled_tables
from uldp.mechanisms.questions.periods import Every, zone_of
from uldp.mechanisms.questions.rollup import RollUp, pool_up
from uldp.mechanisms.questions.shares import shares_of
from uldp.mechanisms.questions.span import Span, Version
from uldp.schemas.arrays import Counts
from uldp.schemas.errors import RequestError
from uldp.schemas.pane import Accounting
from uldp.schemas.statistic import Statistic

FIRST: dict[str, Any] = {"mechanism": {"name": "rr", "epsilon": 1}, "limits": {"min_reports": 10}}
SECOND: dict[str, Any] = {"version": 2, "mechanism": {"name": "oue", "epsilon": 2}, "limits": {"min_reports": 10}}
#: The midnight before ``START``, which is 09:00.
DAY = START - 9 * HOUR


def statistic(version: Version, cells: Counts | list[int], n: int, start: int = START) -> Statistic:
    digest, accounting = version.spec.device_digest, Accounting(n, n)
    return build.pane(cells, start=start, key=version.spec.key, device_digest=digest, accounting=accounting)


def pooled(*counted: tuple[Version, list[Statistic]], every: Every | None = None) -> list[Span]:
    return pool_up([RollUp(version, each, every, zone_of("UTC")) for version, each in counted])


def versions() -> tuple[Version, Version]:
    return Version(build.spec(**FIRST)), Version(build.spec(**SECOND))


def test_the_tables_are_those_of_the_pooled_counts() -> None:
    first, second = versions()
    one, two = np.array([40, 20, 20, 10, 10]), np.array([60, 40, 30, 30, 20])
    hours = [statistic(first, one, 100, DAY + hour * HOUR) for hour in range(3)]
    (pool,) = pooled((first, hours), (second, [statistic(second, two, 100, DAY + 5 * HOUR)]), every="1d")
    expected = pooled_tables([VersionCounts(first.decoder, 3 * one, 300), VersionCounts(second.decoder, two, 100)])
    (table,), (other,) = pool.tables("auto"), expected.tables
    assert (pool.n, pool.versions, pool.period.name) == (400, (1, 2), "2026-01-01")
    assert (table.values.tolist(), table.stderr.tolist()) == (other.values.tolist(), other.stderr.tolist())
    (shares,) = shares_of(pool)
    assert shares.linear.values == pytest.approx(table.unbiased)
    assert np.sqrt(shares.linear.variance) == pytest.approx(table.stderr)
    assert "the users of versions 1 and 2 are of one population" in pool.assumed


def test_a_version_with_few_reports_in_a_day_is_joined_with_its_neighbours() -> None:
    """The second version begins with 4 reports, fewer than 10, so no number is of this day alone."""
    first, second = versions()
    day = 24 * HOUR
    of_first = [statistic(first, [20, 10, 10, 5, 5], 50, DAY + t * day) for t in range(4)]
    of_second = [statistic(second, [4, 2, 1, 1, 1], 4, DAY + 2 * day), statistic(second, [9] * 5, 30, DAY + 3 * day)]
    found = pooled((first, of_first), (second, of_second), every="1d")
    assert [(pool.n, pool.versions) for pool in found] == [(50, (1,)), (50, (1,)), (134, (1, 2))]
    assert found[-1].period.name == "2026-01-03 to 2026-01-04"
    assert [span.n for span in found[-1].spans] == [100, 34]


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"domain": {"size": 6}}, "version 1 cannot be pooled with version 2: their values differ"),
        ({"window": {"size": "2h"}}, "windows have other lengths; add --every"),
    ],
)
def test_versions_that_do_not_fit_are_refused(keys: dict[str, Any], why: str) -> None:
    first, second = Version(build.spec(**FIRST)), Version(build.spec(**(SECOND | keys)))
    cells = [20] * (6 if "domain" in keys else 5)
    other = replace(statistic(second, cells, 40), window_start=START - HOUR)
    with pytest.raises(RequestError, match=why):
        pooled((first, [statistic(first, [20] * 5, 100)]), (second, [other]))
