"""The bit of Duchi et al.: its exact probabilities, as the device draws it."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.mechanisms.replay import laws
from uldp.mechanisms.families.duchi.randomizer import GRID, Duchi

#: Both ends with their neighbours, the middle, and some others.
SYMBOLS = [0, 1, GRID // 2, GRID - 1, GRID, *np.random.default_rng(1).integers(0, GRID + 1, 40).tolist()]
ONE = np.array([1], dtype=np.uint32).tobytes()


@pytest.mark.parametrize("epsilon", [0.001, 0.5, 1.0, 3.0, 10.0, 20.0, 36.0, 50.0])
def test_probabilities_are_on_the_line_from_low_to_high(epsilon: float) -> None:
    ones = [law[ONE] for law in laws(Duchi(epsilon).perturb, SYMBOLS)]
    f = ones[0]
    assert ones == [f + (1 - 2 * f) * Fraction(symbol, GRID) for symbol in SYMBOLS]
    assert float(f) == pytest.approx(1 / (math.exp(epsilon) + 1), rel=1e-15, abs=2**-53)
