"""Block: exact probabilities by counting draws, the line of the mean, and the published variances."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from tests.mechanisms.replay import laws
from uldp.mechanisms.families.block.randomizer import Block, Width
from uldp.schemas.specs.budget import MIN_EPSILON

WIDTHS: tuple[Width, ...] = ("piecewise", "square-wave", "auto")
SMALL = [(e, bins, w) for e in (0.1, 1.0, 4.0, 50.0) for bins in (1, 5, 12) for w in WIDTHS]


def law(block: Block) -> list[list[Fraction]]:
    """Return Pr(output | input) as exact fractions."""
    noise = Fraction(block.noise)  # a multiple of 2^-53
    anywhere, near = noise / block.statistic_size, (1 - noise) / block.width
    return [
        [anywhere + near * (i <= j < i + block.width) for j in range(block.statistic_size)] for i in range(block.size)
    ]


def test_all_draws_have_the_law() -> None:
    block = Block(1.0, 3)
    outputs = [np.array([output], dtype=np.uint32).tobytes() for output in range(block.statistic_size)]
    assert [[row[output] for output in outputs] for row in laws(block.perturb, [0, 1, 2, 3])] == law(block)


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
