"""Memoized: what it leaves as it is, what a report draws, and which mechanisms fit."""

from typing import Any

import numpy as np
import pytest

from uldp.mechanisms.families.bit_flip.randomizer import FlippedBits
from uldp.mechanisms.families.block.randomizer import Block
from uldp.mechanisms.families.duchi.randomizer import Duchi
from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.families.summation.randomizer import Summation
from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding
from uldp.mechanisms.randomizers.memoized import Memoized

EVERYTHING = np.ones(3, dtype=np.bool_)
TWICE = Memoized(Duchi(2.0, 1), Duchi(1.0, 1))


NO_NOISE, LARGER = "differ by their noise alone", "at most the lasting one"


@pytest.mark.parametrize(
    ("inner", "once", "match"),
    [
        (RandomizedResponse(EVERYTHING, 1.0), RandomizedResponse(EVERYTHING, 1.01), LARGER),
        (UnaryEncoding(EVERYTHING, 1.0, 0.5), UnaryEncoding(EVERYTHING, 1.01, 0.5), LARGER),
        (SubsetSelection(5, 1.0, 2), SubsetSelection(5, 1.01, 2), LARGER),
        (Duchi(1.0, 1), Duchi(1.01, 1), LARGER),
        (FlippedBits(3, 0.9), Summation(3, 1.0), LARGER),
        (UnaryEncoding(EVERYTHING, 1.0, 0.5), UnaryEncoding(EVERYTHING, 0.9, 0.99), "no noise gives the law"),
        (RandomizedResponse(EVERYTHING, 2.0), UnaryEncoding(EVERYTHING, 1.0, 0.5), NO_NOISE),
        (RandomizedResponse(EVERYTHING, 2.0), RandomizedResponse(np.arange(3) < 2, 1.0), NO_NOISE),
        (SubsetSelection(9, 2.0, 1), SubsetSelection(9, 1.0, 2), NO_NOISE),
        (LocalHashing(9, 2.0, 4), LocalHashing(9, 1.0, 3), NO_NOISE),
        (Block(2.0, 8, 2), Block(1.0, 8, 3), NO_NOISE),
        (Block(2.0, 8, 3), Block(1.0, 9, 2), NO_NOISE),
        (Duchi(2.0), Duchi(1.0, 1), NO_NOISE),
        (Duchi(2.0, 1), Block(1.0, 1, 1), NO_NOISE),
        (TWICE, TWICE, "needs uniform noise, or bits with noise of their own"),
    ],
)
def test_mechanisms_that_do_not_fit_are_refused(inner: Any, once: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Memoized(inner, once)


def test_the_noise_of_a_small_epsilon_is_exact_to_the_noise_of_block() -> None:
    # At the least epsilon, a' is 1 but for 2e-7: a report must not have less noise than the mechanism at epsilon.
    once, inner = Block(1e-6, 100, 20), Block(0.5, 100, 20)
    (t,) = Memoized(inner, once).noise
    assert t == pytest.approx(1 - (1 - once.noise) / (1 - inner.noise), abs=2**-53)
