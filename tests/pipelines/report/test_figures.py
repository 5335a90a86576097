"""Figures of the page, and which intervals cover the truth: of all values, of those that users hold, or hide."""

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests import build
from uldp.pipelines.report.coverage import Covered, covered
from uldp.pipelines.simulation.truth import KnownShares
from uldp.schemas.table import Basis, Table

pytest.importorskip("matplotlib")

from uldp.pipelines.report import figures
from uldp.schemas.arrays import Floats

SVG = "{http://www.w3.org/2000/svg}"


def noisy(size: int, seed: int = 1) -> tuple[Floats, Floats, tuple[Floats, Floats]]:
    """A truth that falls like 1/x, an estimate of it with negative and zero entries, and intervals around it."""
    truth = 1 / np.arange(1, size + 1)
    truth /= truth.sum()
    estimate = truth + np.random.default_rng(seed).normal(0, 0.01, size)
    estimate[-1] = 0
    return truth, estimate, (estimate - 0.02, estimate + 0.02)


def elements(svg: bytes, name: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter(SVG + name))


@pytest.mark.parametrize("sensitive", [0, 7, 100], ids="{} sensitive".format)
@pytest.mark.parametrize("known", [True, False], ids=["truth", "no truth"])
def test_scatter_draws_every_value_once(known: bool, sensitive: int) -> None:
    truth, estimate, interval = noisy(100)
    svg = figures.scatter(estimate, interval, np.arange(100) < sensitive, truth if known else None)
    drawn = [use for use in elements(svg, "use") if {figures.SENSITIVE, figures.OTHER} & _colours(use)]
    legend = 1 + (0 < sensitive < 100)
    assert len(drawn) == 100 + legend
    assert sum(figures.SENSITIVE in _colours(use) for use in drawn) == sensitive + (sensitive > 0)


def _colours(element: ElementTree.Element) -> set[str]:
    return {part.split(":")[1].strip() for part in element.get("style", "").split(";") if ":" in part}


@pytest.mark.slow
def test_a_large_domain_is_drawn_as_pixels() -> None:
    truth, estimate, interval = noisy(12_800)
    svg = figures.scatter(estimate, interval, np.zeros(12_800, dtype=np.bool_), truth)
    assert elements(svg, "image")
    assert len(svg) < 300_000


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
