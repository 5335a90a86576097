"""Randomized response: its channel, and which payloads are possible."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.protocol.mechanism import PayloadForm
from uldp.schemas.arrays import Mask

# (k, v, epsilon): |Z|, |Z_S|, budget. v = k is RR, (2, 2) is Warner's, (2, 1) is Mangat's.
CASES = [(2, 2, 1.0), (2, 1, 0.5), (5, 5, 2.0), (6, 3, 0.1), (6, 3, 1.0), (9, 1, 3.0), (9, 8, 4.0)]


def mask(k: int, v: int) -> Mask:
    """The last v of k symbols are sensitive, so that sensitive symbols and their positions differ."""
    return np.arange(k) >= k - v


class Zeros:
    """Randomness that always draws the least it can: the event that a comparison must not lose."""

    def random(self, size: int | tuple[int, ...]) -> npt.NDArray[np.float64]:
        return np.zeros(size)

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> npt.NDArray[np.int64]:
        return np.full(size, low)


@pytest.mark.parametrize(("k", "v", "epsilon"), CASES)
def test_channel_is_definition_4(k: int, v: int, epsilon: float) -> None:
    E = math.exp(epsilon)
    c1, c2, c3 = E / (v + E - 1), 1 / (v + E - 1), (E - 1) / (v + E - 1)
    mechanism = RandomizedResponse(mask(k, v), epsilon)
    np.testing.assert_allclose(mechanism.channel.p, np.where(mask(k, v), c1, c3), rtol=1e-12)
    np.testing.assert_allclose(mechanism.channel.q, np.where(mask(k, v), c2, 0), rtol=1e-12)
    assert not mechanism.channel.independent_bits


@pytest.mark.parametrize(("k", "v", "epsilon"), CASES)
def test_reports_of_mixed_values_are_perturbed_one_by_one(k: int, v: int, epsilon: float) -> None:
    values = np.random.default_rng(1).integers(0, k, 1000)
    symbols = RandomizedResponse(mask(k, v), epsilon).perturb(values, np.random.default_rng(2))
    changed = symbols != values
    assert mask(k, v)[symbols[changed]].all()
    assert changed.any()
    assert not changed.all()


def test_noise_is_never_rounded_away() -> None:
    # At epsilon 50 the truth has a probability that rounds to 1, yet a draw below 2^-53 gives noise.
    mechanism = RandomizedResponse(mask(3, 2), 50.0)
    assert mechanism.channel.p[0] == 1.0
    assert mechanism.perturb(np.array([0]), Zeros()).tolist() == [1]


def test_identity_reports_the_truth_and_protects_nothing() -> None:
    mechanism = RandomizedResponse(mask(4, 4), None)
    values = np.array([3, 0, 2, 2])
    assert mechanism.perturb(values, Zeros()).tolist() == [3, 0, 2, 2]
    assert mechanism.channel.p.tolist() == [1, 1, 1, 1]
    assert mechanism.channel.q.tolist() == [0, 0, 0, 0]
    assert not mechanism.sensitive.any()
    assert mechanism.guarantee.epsilon is None


def test_support_counts_each_symbol() -> None:
    mechanism = RandomizedResponse(mask(4, 1), 1.0)
    counts = mechanism.statistic(np.array([2, 0, 2], dtype=np.uint32))
    assert counts.dtype == np.int64
    assert counts.tolist() == [1, 0, 2, 0]
    assert mechanism.statistic(np.array([], dtype=np.uint32)).tolist() == [0, 0, 0, 0]


def test_possible_are_the_symbols_of_z() -> None:
    mechanism = RandomizedResponse(mask(4, 1), 1.0)
    assert mechanism.form == PayloadForm(symbols=mechanism.size)
    assert mechanism.possible(np.array([0, 3, 4, 2**32 - 1], dtype=np.uint32)).tolist() == [True, True, False, False]


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
@pytest.mark.parametrize("v", [1, 2, 4])
def test_epsilon_must_be_positive(epsilon: float, v: int) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        RandomizedResponse(mask(4, v), epsilon)


def test_something_must_be_sensitive() -> None:
    with pytest.raises(ValueError, match="no symbol is sensitive"):
        RandomizedResponse(mask(4, 0), 1.0)


def test_the_callers_mask_is_copied() -> None:
    sensitive: Any = mask(4, 2)
    mechanism = RandomizedResponse(sensitive, 1.0)
    sensitive[:] = False
    assert mechanism.sensitive.tolist() == [False, False, True, True]
