"""Which intervals cover the truth: of all values, of those that users hold, and of those that users hide."""

from typing import Any

import numpy as np
import pytest

from tests import build
from uldp.pipelines.report.coverage import Covered, covered
from uldp.pipelines.simulation.truth import KnownShares
from uldp.schemas.table import Basis, Table

#: Nobody holds the first value, nobody hides the second, and all who hold the fourth hide it.
TRUTH = KnownShares(build.floats(0, 0.4, 0.4, 0.2), build.floats(0, 0.4, 0.3, 0))


def table(name: str, low: list[float], high: list[float]) -> Table:
    ends: dict[str, Any] = {"low": np.array(low), "high": np.array(high), "basis": Basis.EXACT}
    return build.table(name, [0.25] * 4, [0.01] * 4, **ends)


SHARE = table("share", [0.01, 0.3, 0.3, 0.3], [0.1, 0.5, 0.5, 0.5])  # misses the first and the fourth
VISIBLE = table("visible", [0.0, 0.3, 0.31, 0.0], [0.1, 0.5, 0.5, 0.1])  # misses the third
BAND = table("band", [0.0, 0.3, 0.31, 0.0], [0.5, 0.9, 0.9, 0.5])


def test_each_kind_of_interval_is_compared_with_what_it_is_about() -> None:
    assert covered(SHARE, VISIBLE, BAND, TRUTH) == [
        Covered("visible", 3 / 4, 2 / 3, 1 / 2),
        Covered("shown", 2 / 4, 2 / 3, 1 / 2),
        Covered("band", 1, 1, 1),
    ]


def test_without_tags_there_are_the_shares_alone() -> None:
    assert covered(SHARE, None, None, KnownShares(TRUTH.shares)) == [Covered("shown", 2 / 4, 2 / 3, None)]


@pytest.mark.parametrize("off", [1e-18, -1e-18])
def test_a_rounding_error_at_the_end_is_no_miss(off: float) -> None:
    (found,) = covered(table("share", [off, 0, 0, 0], [1.0] * 4), None, None, KnownShares(TRUTH.shares))
    assert found.everywhere == 1
