import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.bits import OUE_THETA, UnaryEncoding, count_bits, sue_theta
from mechanisms.mechanism import Mask

# (k, v, epsilon, theta): v = k is the generalized RAPPOR.
CASES = [
    (2, 2, 1.0, sue_theta(1.0)),
    (6, 6, 0.5, OUE_THETA),
    (6, 2, 1.0, sue_theta(1.0)),
    (6, 5, 2.0, OUE_THETA),
    (9, 1, 4.0, 0.9),
    (17, 4, 0.1, sue_theta(0.1)),
]


def mask(k: int, v: int) -> Mask:
    """The last v of k symbols are sensitive."""
    return np.arange(k) >= k - v


def unpack(payloads: npt.NDArray[np.uint8], k: int) -> npt.NDArray[np.uint8]:
    return np.unpackbits(payloads, axis=1, count=k)


@pytest.mark.parametrize(("k", "v", "epsilon", "theta"), CASES)
def test_channel_is_definition_5(k: int, v: int, epsilon: float, theta: float) -> None:
    E = math.exp(epsilon)
    d1, d2 = theta / ((1 - theta) * E + theta), ((1 - theta) * E + theta) / E
    channel = UnaryEncoding(mask(k, v), epsilon, theta).channel
    np.testing.assert_allclose(channel.p, np.where(mask(k, v), theta, 1 - d2), rtol=1e-12)
    np.testing.assert_allclose(channel.q, np.where(mask(k, v), d1, 0), rtol=1e-12)
    assert channel.independent_bits


@pytest.mark.parametrize(("k", "v", "epsilon", "theta"), CASES)
def test_perturb_draws_independent_bits_from_definition_5(k: int, v: int, epsilon: float, theta: float) -> None:
    E = math.exp(epsilon)
    d1, d2 = theta / ((1 - theta) * E + theta), ((1 - theta) * E + theta) / E
    n = 40_000  # several chunks of perturb
    mechanism, rng = UnaryEncoding(mask(k, v), epsilon, theta), np.random.default_rng(5)
    for x in range(k):
        payloads = mechanism.perturb(np.full(n, x), rng)
        assert payloads.dtype == np.uint8
        assert payloads.shape == (n, math.ceil(k / 8))
        bits = unpack(payloads, k).astype(np.float64)
        Pr = np.where(mask(k, v), d1, 0)
        Pr[x] = theta if mask(k, v)[x] else 1 - d2
        sd = np.sqrt(Pr * (1 - Pr))
        # z < 5 for each mean and for each covariance, which is 0; a bit of probability 0 is never set.
        assert (np.abs(bits.mean(axis=0) - Pr) <= 5 * sd / math.sqrt(n) + 1e-12).all()
        centred = bits - Pr
        covariance = centred.T @ centred / n
        off_diagonal = ~np.eye(k, dtype=np.bool_)
        assert (np.abs(covariance) <= 5 * np.outer(sd, sd) / math.sqrt(n) + 1e-12)[off_diagonal].all()


def test_own_bits_follow_their_reports_across_chunks() -> None:
    # A non-sensitive bit is set only by its own symbol, so each report names the value at its position or none.
    k, n = 700, 1000
    values = np.random.default_rng(0).integers(0, k, n)
    sensitive = np.arange(k) == 0
    bits = unpack(UnaryEncoding(sensitive, 3.0, 0.9).perturb(values, np.random.default_rng(1)), k)
    reports, symbols = np.nonzero(bits[:, 1:])
    assert (values[reports] == symbols + 1).all()
    expected = 0.9 * (1 - math.exp(-3)) * np.count_nonzero(values)
    assert abs(len(reports) - expected) < 5 * math.sqrt(n) / 2


class Zeros:
    """Randomness that always draws the least it can: the event that a comparison must not lose."""

    def random(self, size: int | tuple[int, ...]) -> npt.NDArray[np.float64]:
        return np.zeros(size)

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> npt.NDArray[np.int64]:
        return np.full(size, low)


@pytest.mark.parametrize(("value", "bits"), [(0, [0, 0, 1, 1]), (3, [0, 0, 1, 0])])
def test_noise_is_never_rounded_away(value: int, bits: list[int]) -> None:
    # At epsilon 50, d1 and 1 - theta are far below 2^-53; the least draw sets the false bits and clears the own one.
    mechanism = UnaryEncoding(mask(4, 2), 50.0, 1 - 2**-53)
    assert mechanism.channel.p[value] == 1 - 2**-53
    assert unpack(mechanism.perturb(np.array([value]), Zeros()), 4).tolist() == [bits]


def test_theta_of_sue() -> None:
    for epsilon in (0.1, 1.0, math.log(625)):
        assert sue_theta(epsilon) == pytest.approx(math.exp(epsilon / 2) / (math.exp(epsilon / 2) + 1), rel=1e-14)


def test_sue_is_symmetric() -> None:
    # Wang et al. 2017, section 4.3: SUE has p + q = 1.
    channel = UnaryEncoding(mask(3, 3), 1.7, sue_theta(1.7)).channel
    np.testing.assert_allclose(channel.p + channel.q, 1, rtol=1e-14)


@given(st.integers(0, 600), st.integers(1, 40), st.floats(0, 1), st.integers(0, 2**32))
def test_count_bits_sums_columns(n: int, size: int, density: float, seed: int) -> None:
    bits = np.random.default_rng(seed).random((n, size)) < density
    assert count_bits(np.packbits(bits, axis=1), size).tolist() == bits.sum(axis=0).tolist()


def test_count_bits_holds_full_columns() -> None:
    for n in (254, 255, 256, 510, 511):
        assert count_bits(np.full((n, 2), 255, dtype=np.uint8), 11).tolist() == [n] * 11


@pytest.mark.parametrize(("k", "v"), [(6, 2), (6, 6), (8, 3), (9, 9), (9, 4), (16, 15), (11, 1)])
def test_possible_agrees_with_the_definition_on_every_payload(k: int, v: int) -> None:
    width = math.ceil(k / 8)
    payloads = np.array(list(itertools.product(range(256), repeat=width)), dtype=np.uint8)
    bits = np.unpackbits(payloads, axis=1)
    expected = (bits[:, k:].sum(axis=1) == 0) & (bits[:, :k][:, ~mask(k, v)].sum(axis=1) <= 1)
    assert (UnaryEncoding(mask(k, v), 1.0, 0.5).possible(payloads) == expected).all()


@pytest.mark.parametrize(("k", "v", "epsilon", "theta"), CASES)
def test_perturb_makes_possible_payloads(k: int, v: int, epsilon: float, theta: float) -> None:
    mechanism = UnaryEncoding(mask(k, v), epsilon, theta)
    values = np.random.default_rng(3).integers(0, k, 5000)
    assert mechanism.possible(mechanism.perturb(values, np.random.default_rng(4))).all()


def test_no_reports() -> None:
    mechanism = UnaryEncoding(mask(9, 2), 1.0, 0.5)
    nothing = mechanism.perturb(np.array([], dtype=np.int64), np.random.default_rng())
    assert nothing.shape == (0, 2)
    assert mechanism.support(nothing).tolist() == [0] * 9
    assert mechanism.possible(nothing).shape == (0,)


def test_a_value_outside_of_z_is_refused_without_naming_it() -> None:
    with pytest.raises(ValueError, match="outside of the 9 symbols") as caught:
        UnaryEncoding(mask(9, 2), 1.0, 0.5).perturb(np.array([1234]), np.random.default_rng())
    assert "1234" not in str(caught.value)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
def test_epsilon_must_be_positive(epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        UnaryEncoding(mask(4, 2), epsilon, 0.5)


@pytest.mark.parametrize("theta", [0.0, 1.0, -0.1, math.nan])
def test_theta_must_be_inside_0_1(theta: float) -> None:
    with pytest.raises(ValueError, match="theta"):
        UnaryEncoding(mask(4, 2), 1.0, theta)


def test_something_must_be_sensitive() -> None:
    with pytest.raises(ValueError, match="no symbol is sensitive"):
        UnaryEncoding(mask(4, 0), 1.0, 0.5)
