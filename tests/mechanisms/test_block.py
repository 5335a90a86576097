"""Block: exact probabilities by counting draws, the line of the mean, and the published variances."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from uldp.mechanisms.devices.randomness import SystemRandomness
from uldp.mechanisms.families.block.randomizer import Block, Width
from uldp.schemas.specs.budget import MIN_EPSILON

WIDTHS: tuple[Width, ...] = ("piecewise", "square-wave", "auto")
SMALL = [(e, bins, w) for e in (0.1, 1.0, 4.0, 50.0) for bins in (1, 5, 12) for w in WIDTHS]


def law(block: Block) -> list[list[Fraction]]:
    """Return Pr(output | input) as exact fractions, over all draws of ``perturb``."""
    noise = Fraction(block.noise)  # a multiple of 2^-53
    anywhere, near = noise / block.statistic_size, (1 - noise) / block.width
    return [
        [anywhere + near * (i <= j < i + block.width) for j in range(block.statistic_size)] for i in range(block.size)
    ]


class Draws:
    """Randomness that gives each number asked for, in turn."""

    def __init__(self, *draws: int) -> None:
        self.draws = list(draws)

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> npt.NDArray[np.int64]:
        draw = self.draws.pop(0)
        assert low <= draw < high
        return np.full(size, draw)

    def random(self, size: int | tuple[int, ...]) -> npt.NDArray[np.float64]:
        raise AssertionError("a block draws integers only")


@pytest.mark.parametrize("symbol", range(4))
def test_perturb_maps_three_integers_to_an_output(symbol: int) -> None:
    block = Block(1.0, 3)
    below = int(block.noise * 2**53)
    for anywhere in range(block.statistic_size):
        for place in range(block.width):
            for first, expected in [(0, anywhere), (below - 1, anywhere), (below, symbol + place)]:
                draws = Draws(first, anywhere, place)
                assert block.perturb(np.array([symbol]), draws).tolist() == [expected]
                assert not draws.draws


@pytest.mark.parametrize(("epsilon", "bins", "width"), SMALL)
def test_the_mean_output_is_a_line_and_input_at_its_inverse(epsilon: float, bins: int, width: Width) -> None:
    block = Block(epsilon, bins, width)
    means = [sum(j * p for j, p in enumerate(row)) for row in law(block)]
    assert {two - one for one, two in pairwise(means)} == {1 - Fraction(block.noise)}
    assert block.input_at(np.array(means, dtype=np.float64)) == pytest.approx(np.arange(bins + 1), rel=1e-12, abs=1e-11)


@pytest.mark.parametrize(("epsilon", "bins", "width"), SMALL)
def test_variance_is_that_of_the_law(epsilon: float, bins: int, width: Width) -> None:
    block = Block(epsilon, bins, width)
    slope = 1 - Fraction(block.noise)
    exact = []
    for row in law(block):
        mean = sum(j * p for j, p in enumerate(row))
        exact.append(float(sum((j - mean) ** 2 * p for j, p in enumerate(row)) / slope**2))
    np.testing.assert_allclose(block.variance(np.arange(block.size)), exact, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 8.0])
def test_piecewise_has_the_published_variance(epsilon: float) -> None:
    # Wang et al. (ICDE 2019), Lemma 1, on [-1, 1]: x^2/(s-1) + (s+3)/(3 (s-1)^2) with s = e^(epsilon/2).
    bins, s = 1 << 22, math.exp(epsilon / 2)
    variance = Block(epsilon, bins, "piecewise").variance(np.array([bins // 2, bins])) * (2 / bins) ** 2
    at_0 = (s + 3) / (3 * (s - 1) ** 2)
    assert variance / [at_0, 1 / (s - 1) + at_0] == pytest.approx([1, 1], abs=1e-5)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0])
def test_auto_is_the_best_of_all_widths(epsilon: float) -> None:
    # Wider than the grid too, which the search leaves out.
    bins, E = 256, math.exp(epsilon)
    worst = []
    for W in range(1, 4 * bins):
        noise, M = (bins + W) / (bins + W * E), bins + W
        j, row = np.arange(M), np.full(M, noise / M)
        row[:W] += (1 - noise) / W
        worst.append((row @ j**2 - (row @ j) ** 2) / (1 - noise) ** 2)
    assert Block(epsilon, bins).width == 1 + int(np.argmin(worst))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_square_wave_has_the_published_width(epsilon: float) -> None:
    E = math.exp(epsilon)
    b = (epsilon * E - E + 1) / (2 * E * (E - 1 - epsilon))  # half of the width, in ranges
    assert Block(epsilon, 4096, "square-wave").width == round(4096 * 2 * b)


@pytest.mark.parametrize("epsilon", [MIN_EPSILON, 1e-3])
def test_tiny_budgets_have_widths(epsilon: float) -> None:
    assert [Block(epsilon, 1000, width).width for width in WIDTHS] == pytest.approx([1000] * 3, abs=1)


def test_one_bin_is_the_bit_of_duchi() -> None:
    block = Block(1.0, 1)
    assert (block.statistic_size, block.width) == (2, 1)
    assert float(law(block)[0][1]) == pytest.approx(1 / (math.e + 1), rel=1e-15)


def test_frequencies_of_outputs_fit_the_law() -> None:
    block, n = Block(1.0, 4), 100_000
    for i, row in enumerate(law(block)):
        payloads = block.perturb(np.full(n, i), SystemRandomness())
        assert payloads.dtype == np.uint32
        assert block.possible(payloads).all()
        p = np.array(row, dtype=float)
        # 5 inputs with 8 cells: |z| > 6 has a probability of 1e-7 in all.
        z = (block.statistic(payloads) - n * p) / np.sqrt(n * p * (1 - p))
        assert np.abs(z).max() < 6


def test_only_outputs_are_possible() -> None:
    block = Block(1.0, 4)
    M = block.statistic_size
    assert block.possible(np.array([0, M - 1, M, 2**32 - 1], dtype=np.uint32)).tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("epsilon", "bins", "message"), [(0.0, 4, "epsilon"), (math.nan, 4, "epsilon"), (1.0, 0, "bin")]
)
def test_wrong_parameters_are_refused(epsilon: float, bins: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Block(epsilon, bins)
