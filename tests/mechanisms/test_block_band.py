"""Exact intervals of quantiles: by enumeration of all cells of a few reports, and at many reports by the law."""

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

from uldp.mechanisms.estimators.ems import GridChannel
from uldp.mechanisms.families.block.distribution import exact_ends, shares_up_to
from uldp.mechanisms.families.block.randomizer import Block
from uldp.schemas.arrays import Counts, Floats

#: Blocks below and above the grid, and of one output.
CHANNELS = [GridChannel(2, 1, 0.3), GridChannel(3, 2, 0.4), GridChannel(2, 3, 0.2)]
#: Even shares of points, an atom, a gap, and all at one end.
SHARES = ([1, 1, 1, 1], [1, 6, 1, 1], [5, 0, 0, 5], [0, 0, 0, 1])


def law(channel: GridChannel, points: Floats) -> Floats:
    """The probability of each output, from the definition of Block."""
    p = np.full(channel.bins + channel.width, channel.noise / (channel.bins + channel.width))
    for point, share in enumerate(points):
        p[point : point + channel.width] += share * (1 - channel.noise) / channel.width
    return p


def every_cells(n: int, outputs: int) -> Iterator[Counts]:
    """All cells of n reports."""
    if outputs == 1:
        yield np.array([n])
        return
    for first in range(n + 1):
        for rest in every_cells(n - first, outputs - 1):
            yield np.array([first, *rest])


def shares_of(channel: GridChannel, weights: list[int]) -> Floats:
    points = np.array(weights[: channel.bins] + weights[-1:], dtype=np.float64)
    shares: Floats = points / points.sum()
    return shares


@pytest.mark.parametrize("coverage", [0.6, 0.9])
@pytest.mark.parametrize("weights", SHARES)
@pytest.mark.parametrize("channel", CHANNELS)
def test_ends_are_wrong_with_at_most_their_probability(
    channel: GridChannel, weights: list[int], coverage: float
) -> None:
    """Numbers are the points themselves, so a quantile is within if the shares on both sides say so."""
    points, levels, n = shares_of(channel, weights), (0.2, 0.5, 0.8), 7
    p, truth = law(channel, points), points.cumsum()
    below, wrong, held = np.concatenate([[0], truth]), np.zeros((2, len(points))), np.zeros(len(levels))
    for cells in every_cells(n, len(p)):
        low, high = shares_up_to(channel, cells, coverage)
        first, last = exact_ends(channel, cells, levels, coverage)
        chance = stats.multinomial.pmf(cells, n, p)
        wrong += chance * np.array([low > truth + 1e-12, high < truth - 1e-12])
        held += chance * ((below[first] <= levels) & (levels <= truth[last]))
    assert wrong.max() <= (1 - coverage) / 2 + 1e-9
    assert (held >= coverage - 1e-9).all()


@pytest.mark.parametrize(("epsilon", "bins"), [(0.5, 24), (1.0, 64), (4.0, 64), (8.0, 24)])
def test_bounds_close_in_on_the_shares_at_many_reports(epsilon: float, bins: int) -> None:
    block, n = Block(epsilon, bins), 10**12
    channel = GridChannel(block.grid, block.width, block.noise)
    points = np.random.default_rng(1).dirichlet(np.full(bins + 1, 0.5))
    low, high = shares_up_to(channel, np.rint(n * law(channel, points)).astype(np.int64), 0.95)
    truth = points.cumsum()
    assert ((low <= truth + 1e-6) & (truth <= high + 1e-6)).all()
    assert (high - low).max() < 1e-4
