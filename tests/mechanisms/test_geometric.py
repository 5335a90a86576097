"""Two-sided geometric noise: its weights, its law, and which payloads are improbable."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import default_rng

from uldp.mechanisms.families.geometric.randomizer import Geometric
from uldp.mechanisms.families.geometric.spec import mean_decoder
from uldp.mechanisms.inference.plausibility import ALARM_LEVEL

SETTINGS = [(0.05, 1), (0.5, 4), (1.0, 16), (5.0, 16), (20.0, 16)]


def exact_law(mechanism: Geometric, symbol: int) -> list[Fraction]:
    """The probability of each payload under a symbol, by adding each noise to it."""
    law, n = [Fraction(0)] * mechanism.statistic_size, len(mechanism.weights) // 2
    total = int(mechanism.weights.sum())
    for noise, weight in zip(range(-n, n + 1), mechanism.weights.tolist(), strict=True):
        law[min(max(symbol + noise + mechanism.margin, 0), len(law) - 1)] += Fraction(weight, total)
    return law


@pytest.mark.parametrize(("epsilon", "grid"), SETTINGS)
def test_the_law_is_that_of_each_noise(epsilon: float, grid: int) -> None:
    mechanism = Geometric(epsilon, grid)
    for symbol in (0, grid // 2, grid):
        law = mechanism.law(np.eye(grid + 1)[symbol])
        assert law == pytest.approx([float(each) for each in exact_law(mechanism, symbol)], rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(("epsilon", "grid"), SETTINGS)
def test_the_noise_is_about_geometric(epsilon: float, grid: int) -> None:
    """Ghosh et al. (STOC 2009): the variance is 2a / (1 - a)^2 with a = e^(-epsilon/g)."""
    a = math.exp(-epsilon / grid)
    assert Geometric(epsilon, grid).noise_variance == pytest.approx(2 * a / (1 - a) ** 2, rel=1e-3)


def test_all_integers_that_a_device_draws_are_below_two_to_the_53() -> None:
    assert all(int(Geometric(*each).weights.sum()) <= 1 << 53 for each in SETTINGS)


@pytest.mark.parametrize(("step", "forged"), [(120, 20), (70, 100), (44, 300)])
def test_one_payload_of_many_reports_is_improbable(step: int, forged: int) -> None:
    """The farther out it is, the fewer: 20 of 20,000 at seven and a half times the range."""
    mechanism, rng, n = Geometric(1.0, 16), default_rng(4), 20_000
    cells = mechanism.statistic(mechanism.perturb(rng.integers(0, 17, n - forged), rng))
    cells[mechanism.margin + step] += forged
    (p_value,) = mean_decoder(mechanism, 0.0, 1.0).p_values(cells, n).values()
    assert p_value < ALARM_LEVEL


def test_an_epsilon_without_noise_beyond_the_grid_is_refused() -> None:
    with pytest.raises(ValueError, match="leaves no noise beyond a grid of 1 steps"):
        Geometric(20.0, 1)
