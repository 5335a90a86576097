"""Quantiles of a number have small errors and intervals that cover, with few bins too, by the benchmark of them."""

import numpy as np
import pytest

from benchmarks.quantiles import measure
from uldp.mechanisms.families.block.distribution import QUANTILE_LEVELS, Distribution
from uldp.mechanisms.families.block.randomizer import Block


@pytest.mark.parametrize(
    ("shape", "most"), [("beta", 0.012), ("exponential", 0.012), ("two modes", 0.03), ("peak", 0.006), ("atom", 0.03)]
)
def test_quantiles_of_24_bins_are_near_and_covered(shape: str, most: float) -> None:
    figures = measure(shape, bins=24, n=20_000, trials=8)
    assert figures.error < most
    # The eight intervals of a level, if it is covered .93 of the time.
    assert figures.least >= 0.75
    assert figures.bins > 0.85


def test_levels_at_the_edges_of_an_atom_are_covered_with_many_bins() -> None:
    """Half of the numbers are one, and smooth fits spread it over bins on both sides."""
    figures = measure("atom", bins=256, n=20_000, trials=12)
    assert figures.fits <= 0.75 < figures.least == 1
    assert figures.width < 2 * figures.fits_width


def test_an_atom_is_in_the_two_bins_that_a_report_may_be_rounded_to() -> None:
    block, n = Block(1.0, 24), 10**7
    law = block.law(np.where(np.arange(25) == 7, 0.3, np.where(np.arange(25) == 8, 0.7, 0)))
    distribution = Distribution(block, np.rint(n * law).astype(np.int64), n)
    quantiles = distribution.quantiles()
    atom = 7.7 / 24
    assert ((quantiles.low <= atom) & (atom <= quantiles.high)).all()
    assert quantiles.values == pytest.approx(np.full(len(QUANTILE_LEVELS), atom), abs=1 / 24)
