"""The bit of Duchi et al.: its exact probabilities, and so its guarantee, as the device draws it."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from uldp.mechanisms.families.duchi.randomizer import GRID, Duchi
from uldp.mechanisms.protocol.mechanism import Guarantee, Privacy
from uldp.schemas.arrays import Floats

EPSILONS = [0.001, 0.5, 1.0, 3.0, 10.0, 20.0, 36.0, 50.0]
EVERYTHING = np.arange(GRID + 1)
#: Both ends with their neighbours, the middle, and some others.
SYMBOLS = [0, 1, GRID // 2, GRID - 1, GRID, *np.random.default_rng(1).integers(0, GRID + 1, 40).tolist()]


@dataclass
class Fixed:
    """Randomness whose integers are each once, or all ``integer``, and whose floats are all ``uniform``."""

    uniform: float
    integer: int | None = None

    def random(self, size: int | tuple[int, ...]) -> Floats:
        return np.full(size, self.uniform)

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> npt.NDArray[np.int64]:
        return np.arange(low, high) if self.integer is None else np.full(size, self.integer)


def flip(mechanism: Duchi) -> Fraction:
    """The exact probability of the noise, if floats are multiples of 2^-53; perturb changes its mind there."""
    threshold = math.ceil(Fraction(mechanism.flip_probability) * 2**53)
    at = [mechanism.perturb(np.array([0]), Fixed(k / 2**53, 0))[0] for k in (threshold - 1, threshold)]
    assert at == [1, 0]
    return Fraction(threshold, 2**53)


def probability_of_one(mechanism: Duchi, symbol: int) -> Fraction:
    """Pr(1 | symbol), exact: over all integers that can be drawn, with and without noise."""
    f, inputs = flip(mechanism), np.full(GRID, symbol)
    with_noise, without = (int(mechanism.perturb(inputs, Fixed(uniform)).sum()) for uniform in (0.0, 1 - 2**-53))
    return f * Fraction(with_noise, GRID) + (1 - f) * Fraction(without, GRID)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_probabilities_are_on_the_line_from_low_to_high(epsilon: float) -> None:
    mechanism = Duchi(epsilon)
    f = flip(mechanism)
    for symbol in SYMBOLS:
        assert probability_of_one(mechanism, symbol) == f + (1 - 2 * f) * Fraction(symbol, GRID)
    assert float(f) == pytest.approx(1 / (math.exp(epsilon) + 1), rel=1e-15, abs=2**-53)


@pytest.mark.parametrize("integer", [0, 1, 777, GRID - 1])
def test_no_symbol_leaves_the_line(integer: int) -> None:
    # At one draw, bits turn from 0 to 1 once, behind this draw; so the test of some symbols is one of all.
    bits = Duchi(1.0).perturb(EVERYTHING, Fixed(1 - 2**-53, integer))
    assert bits.tolist() == (integer < EVERYTHING).tolist()


@pytest.mark.parametrize("symbol", [0, GRID])
def test_noise_is_never_rounded_away(symbol: int) -> None:
    # At epsilon 700 f is far below 2^-53, and the least draw still flips the bit.
    assert Duchi(700.0).perturb(np.array([symbol]), Fixed(0.0, 0)).tolist() == [symbol == 0]


def test_reports_are_bits_of_two_cells() -> None:
    mechanism = Duchi(1.0)
    payloads = mechanism.perturb(np.array([0, 5, GRID]), np.random.default_rng(0))
    assert payloads.dtype == np.uint32
    assert mechanism.possible(np.array([0, 1, 2, 2**32 - 1], dtype=np.uint32)).tolist() == [True, True, False, False]
    (cells,) = mechanism.tally([np.array([1, 0, 1], dtype=np.uint32)], np.zeros(3, dtype=np.int64), 1)
    assert np.asarray(cells).tolist() == [1, 2]
    assert mechanism.guarantee == Guarantee(Privacy.LDP, 1.0)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, -math.inf, 1e-17, 1e4])
def test_epsilon_is_positive_and_finite(epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon must be positive and finite"):
        Duchi(epsilon)
