"""Figures of the page."""

from xml.etree import ElementTree

import numpy as np
import pytest

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
