"""Maximum likelihood against optimality conditions, brute force and EM."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mechanisms.optima import optimality_gap
from uldp.mechanisms.estimators.likelihood import em, exact_mle
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.schemas.arrays import Counts, Floats


def mask(sensitive: int, size: int) -> npt.NDArray[np.bool_]:
    return np.arange(size) < sensitive


def symbol_matrix(mechanism: RandomizedResponse) -> Floats:
    """Q[x, y]: the probability of report y if x is true, from the mechanism's definition."""
    channel = mechanism.channel
    return np.where(np.eye(mechanism.size, dtype=np.bool_), channel.p, channel.q)


@st.composite
def urr_windows(draw: st.DrawFn) -> tuple[RandomizedResponse, Counts]:
    size = draw(st.integers(2, 12))
    mechanism = RandomizedResponse(mask(draw(st.integers(1, size)), size), draw(st.floats(0.05, 8)))
    counts = draw(st.lists(st.integers(0, 200), min_size=size, max_size=size).filter(lambda counts: sum(counts) > 0))
    return mechanism, np.array(counts)


@given(window=urr_windows())
def test_exact_mle_is_the_maximum(window: tuple[RandomizedResponse, Counts]) -> None:
    mechanism, counts = window
    r = exact_mle(mechanism.channel, counts, int(counts.sum()))
    assert (r >= 0).all()
    assert r.sum() == pytest.approx(1, abs=1e-9)
    assert optimality_gap(r, symbol_matrix(mechanism), counts) < 1e-9


def test_exact_mle_on_a_large_domain() -> None:
    # The gradient of the mean log-likelihood is f/(b + r), which must be one constant where r > 0 and less elsewhere.
    size, n = 12_800, 240_000
    mechanism = RandomizedResponse(mask(2432, size), 6.0)
    rng = np.random.default_rng(4)
    m = mechanism.channel.support_probability(rng.dirichlet(np.full(size, 0.05)))
    counts = rng.multinomial(n, m / m.sum())
    r = exact_mle(mechanism.channel, counts, n)
    assert r.sum() == pytest.approx(1, abs=1e-9)
    b = mechanism.channel.q / mechanism.channel.gain
    seen = counts > 0
    gradient = counts[seen] / n / (b + r)[seen]
    active = r[seen] > 0
    assert gradient[active] == pytest.approx(gradient[active][0], rel=1e-9)
    assert gradient[~active].max() <= gradient[active][0] * (1 + 1e-9)


def test_em_arrives_at_the_exact_maximum() -> None:
    mechanism = RandomizedResponse(mask(4, 8), 3.0)
    counts = np.array([90, 60, 10, 5, 20, 10, 5, 0])
    climbed = em(mechanism.channel, counts, 200, tolerance=1e-12)
    assert climbed == pytest.approx(exact_mle(mechanism.channel, counts, 200), abs=1e-6)


@pytest.mark.parametrize(
    ("counts", "n", "message"), [([1, 2, 3], 5, "sum to 6 with n=5"), ([0, 0, 0], 0, "n=0"), ([1, 2], 3, "shape")]
)
def test_impossible_counts_are_refused(counts: list[int], n: int, message: str) -> None:
    channel = RandomizedResponse(mask(2, 3), 1.0).channel
    with pytest.raises(ValueError, match=message):
        exact_mle(channel, np.array(counts), n)
    with pytest.raises(ValueError, match=message):
        em(channel, np.array(counts), n)
