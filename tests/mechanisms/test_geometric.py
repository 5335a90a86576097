"""Two-sided geometric noise: its weights, its law, and which payloads are improbable."""

import math

import numpy as np
import pytest
from numpy.random import default_rng

from tests.mechanisms.replay import laws
from uldp.mechanisms.families.geometric.randomizer import Geometric
from uldp.mechanisms.families.geometric.spec import StepsDecoder
from uldp.mechanisms.inference.plausibility import ALARM_LEVEL

SETTINGS = [(0.05, 1), (0.5, 4), (1.0, 16), (5.0, 16), (20.0, 16)]


@pytest.mark.parametrize(("epsilon", "grid"), SETTINGS)
def test_the_law_is_that_of_all_draws(epsilon: float, grid: int) -> None:
    mechanism, symbols = Geometric(epsilon, grid), [0, grid // 2, grid]
    outputs = [np.array([output], dtype=np.uint32).tobytes() for output in range(mechanism.statistic_size)]
    for symbol, law in zip(symbols, laws(mechanism.perturb, symbols), strict=True):
        exact = [float(law.get(output, 0)) for output in outputs]
        assert mechanism.law(np.eye(grid + 1)[symbol]) == pytest.approx(exact, rel=1e-9, abs=1e-15)


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
    (p_value,) = StepsDecoder(mechanism, 0.0, 1.0).p_values(cells, n).values()
    assert p_value < ALARM_LEVEL


def test_an_epsilon_without_noise_beyond_the_grid_is_refused() -> None:
    with pytest.raises(ValueError, match="leaves no noise beyond a grid of 1 steps"):
        Geometric(20.0, 1)
