"""Maximum likelihood against optimality conditions, brute force and EM."""

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from uldp.mechanisms import likelihood
from uldp.mechanisms.likelihood import em, em_bits, exact_mle
from uldp.mechanisms.randomized_response import RandomizedResponse
from uldp.mechanisms.unary_encoding import OUE_THETA, UnaryEncoding, sue_theta
from uldp.schemas.arrays import Counts, Floats

Bits = npt.NDArray[np.uint8]


def mask(sensitive: int, size: int) -> npt.NDArray[np.bool_]:
    return np.arange(size) < sensitive


def symbol_matrix(mechanism: RandomizedResponse) -> Floats:
    """Q[x, y]: the probability of report y if x is true, from the mechanism's definition."""
    channel = mechanism.channel
    return np.where(np.eye(mechanism.size, dtype=np.bool_), channel.p, channel.q)


def bit_matrix(mechanism: UnaryEncoding) -> tuple[Bits, Floats]:
    """All possible reports as rows of bits, and Q[x, y], from Definition 5."""
    k, channel = mechanism.size, mechanism.channel
    reports = np.array(list(product([0, 1], repeat=k)), dtype=np.uint8)
    one = np.where(np.eye(k, dtype=np.bool_), channel.p, channel.q)[:, np.newaxis]
    Q = np.where(reports, one, 1 - one).prod(axis=2)
    possible = Q.max(axis=0) > 0
    return reports[possible], Q[:, possible]


def log_likelihood(r: Floats, Q: Floats, histogram: Counts) -> float:
    seen = histogram > 0
    return float(histogram[seen] @ np.log(r @ Q[:, seen]))


def optimality_gap(r: Floats, Q: Floats, histogram: Counts) -> float:
    """Upper bound on how far r is from the maximum of the mean log-likelihood.

    That is concave in r, so no point of the simplex is above its tangent plane at r, which is highest at a corner.
    """
    seen = histogram > 0
    gradient = Q[:, seen] @ (histogram[seen] / (r @ Q[:, seen])) / histogram.sum()
    return float(gradient.max() - gradient @ r)


def numerical_optimum(Q: Floats, histogram: Counts) -> Floats:
    seen = histogram > 0
    fit = minimize(
        lambda r: -float(histogram[seen] @ np.log(r @ Q[:, seen] + 1e-300)) / histogram.sum(),
        np.full(len(Q), 1 / len(Q)),
        method="SLSQP",
        bounds=[(0, 1)] * len(Q),
        constraints=LinearConstraint(np.ones((1, len(Q))), 1, 1),
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return np.asarray(fit.x)


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


@pytest.mark.parametrize("sensitive", [1, 3, 6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_exact_mle_is_what_a_convex_optimizer_finds(sensitive: int, epsilon: float) -> None:
    mechanism = RandomizedResponse(mask(sensitive, 6), epsilon)
    counts = np.random.default_rng(3).multinomial(500, [0.3, 0.2, 0.2, 0.1, 0.15, 0.05])
    expected = numerical_optimum(symbol_matrix(mechanism), counts)
    assert exact_mle(mechanism.channel, counts, 500) == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("seed", range(8))
def test_exact_mle_is_at_least_as_likely_as_20000_steps_of_em(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 60))
    mechanism = RandomizedResponse(mask(int(rng.integers(1, size + 1)), size), float(rng.uniform(0.1, 6)))
    Q = symbol_matrix(mechanism)
    counts = rng.multinomial(1000, rng.dirichlet(np.full(size, 0.3)) @ Q)
    climbed = em(mechanism.channel, counts, 1000, tolerance=0, max_iterations=20_000).distribution
    exact = exact_mle(mechanism.channel, counts, 1000)
    assert log_likelihood(exact, Q, counts) >= log_likelihood(climbed, Q, counts) - 1e-9


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


def test_exact_mle_is_the_unbiased_estimate_inside_the_simplex() -> None:
    channel = RandomizedResponse(mask(2, 4), 2.0).channel
    counts = np.array([30, 28, 25, 17])
    assert (channel.unbiased(counts, 100) > 0).all()
    assert exact_mle(channel, counts, 100) == pytest.approx(channel.unbiased(counts, 100))


def test_one_step_of_em_is_bayes() -> None:
    # r'(x) = sum_y f(y) r(x) Q(y|x) / sum_x' r(x') Q(y|x'), from the uniform distribution.
    mechanism = RandomizedResponse(mask(3, 5), 1.5)
    counts = np.array([12, 0, 5, 3, 0])
    Q = symbol_matrix(mechanism)
    posterior = Q / Q.sum(axis=0)
    fit = em(mechanism.channel, counts, 20, max_iterations=1)
    assert fit.distribution == pytest.approx(posterior @ (counts / 20))
    assert fit.iterations == 1
    assert not fit.converged


@given(window=urr_windows())
def test_em_never_loses_likelihood(window: tuple[RandomizedResponse, Counts]) -> None:
    mechanism, counts = window
    n, Q = int(counts.sum()), symbol_matrix(mechanism)
    climb = [em(mechanism.channel, counts, n, tolerance=0, max_iterations=i).distribution for i in (1, 2, 5, 20)]
    heights = [log_likelihood(r, Q, counts) for r in climb]
    assert (np.diff(heights) >= -1e-9 * n).all()


def test_em_arrives_at_the_exact_maximum() -> None:
    mechanism = RandomizedResponse(mask(4, 8), 3.0)
    counts = np.array([90, 60, 10, 5, 20, 10, 5, 0])
    fit = em(mechanism.channel, counts, 200, tolerance=1e-12)
    assert fit.converged
    assert fit.distribution == pytest.approx(exact_mle(mechanism.channel, counts, 200), abs=1e-6)


def test_em_leaves_a_start_at_zero() -> None:
    mechanism = RandomizedResponse(mask(4, 8), 3.0)
    counts = np.array([90, 60, 10, 5, 20, 10, 5, 0])
    fit = em(mechanism.channel, counts, 200, start=np.eye(8)[7], tolerance=1e-12)
    assert fit.distribution == pytest.approx(exact_mle(mechanism.channel, counts, 200), abs=1e-6)


def test_em_at_small_epsilon_depends_on_its_start() -> None:
    # Why exact_mle exists, and why EmFit says whether it converged.
    mechanism = RandomizedResponse(mask(30, 40), 0.1)
    m = mechanism.channel.support_probability(np.full(40, 1 / 40))
    counts = np.random.default_rng(5).multinomial(1000, m)
    exact = exact_mle(mechanism.channel, counts, 1000)
    for start in (None, np.eye(40)[0]):
        fit = em(mechanism.channel, counts, 1000, start=start, tolerance=1e-9, max_iterations=2000)
        assert not fit.converged
        assert np.abs(fit.distribution - exact).sum() > 0.1


BIT_MECHANISMS = {
    "rappor": UnaryEncoding(mask(4, 4), 1.0, sue_theta(1.0)),
    "oue": UnaryEncoding(mask(3, 3), 3.0, OUE_THETA),
    "urap": UnaryEncoding(mask(2, 4), 1.5, sue_theta(1.5)),
    "uoue": UnaryEncoding(mask(1, 4), 2.0, OUE_THETA),
    "urap scattered": UnaryEncoding(np.array([False, True, False, True]), 1.0, sue_theta(1.0)),
}


@pytest.fixture(params=BIT_MECHANISMS)
def bit_mechanism(request: pytest.FixtureRequest) -> UnaryEncoding:
    return BIT_MECHANISMS[request.param]


def perturbed(mechanism: UnaryEncoding, n: int, seed: int) -> npt.NDArray[np.uint8]:
    rng = np.random.default_rng(seed)
    return mechanism.perturb(rng.choice(mechanism.size, n, p=rng.dirichlet(np.ones(mechanism.size))), rng)


def histogram(mechanism: UnaryEncoding, payloads: npt.NDArray[np.uint8], reports: Bits) -> Counts:
    """How often each of the rows of ``reports`` occurs."""
    bits = np.unpackbits(payloads, axis=1, count=mechanism.size)
    return np.asarray((bits[:, np.newaxis] == reports).all(axis=2).sum(axis=0))


def test_em_bits_is_the_maximum(bit_mechanism: UnaryEncoding) -> None:
    reports, Q = bit_matrix(bit_mechanism)
    payloads = perturbed(bit_mechanism, 400, seed=6)
    counts = histogram(bit_mechanism, payloads, reports)
    fit = em_bits(bit_mechanism, payloads, tolerance=1e-13, max_iterations=200_000)
    assert fit.distribution.sum() == pytest.approx(1)
    assert optimality_gap(fit.distribution, Q, counts) < 1e-8
    assert fit.distribution == pytest.approx(numerical_optimum(Q, counts), abs=1e-3)


def test_em_bits_steps_as_em_over_all_reports_does(bit_mechanism: UnaryEncoding) -> None:
    reports, Q = bit_matrix(bit_mechanism)
    payloads = perturbed(bit_mechanism, 300, seed=7)
    f = histogram(bit_mechanism, payloads, reports) / 300
    r = np.full(bit_mechanism.size, 1 / bit_mechanism.size)
    sensitive = bit_mechanism.sensitive
    for iterations in range(1, 6):
        r = r * (Q @ (f / (r @ Q)))
        fit = em_bits(bit_mechanism, payloads, tolerance=0, max_iterations=iterations)
        assert fit.distribution[sensitive] == pytest.approx(r[sensitive])
        # Within Z_N the pooled classes are ahead: they share as the maximum does from the first step.
        assert fit.distribution[~sensitive].sum() == pytest.approx(r[~sensitive].sum())


def test_em_bits_shares_the_pool_as_invertible_reports_do() -> None:
    mechanism = BIT_MECHANISMS["urap"]
    bits = np.array([[0, 0, 1, 0]] * 3 + [[1, 0, 0, 1]] + [[1, 0, 0, 0], [0, 0, 0, 0]], dtype=np.uint8)
    r = em_bits(mechanism, np.packbits(bits, axis=1)).distribution
    assert r[2] == pytest.approx(3 * r[3])


def test_em_bits_shares_the_pool_equally_without_invertible_reports() -> None:
    # An empty report says nothing: d2 = (1-theta)/(1-d1), so all symbols send it with the same probability.
    r = em_bits(BIT_MECHANISMS["urap"], np.zeros((10, 1), dtype=np.uint8)).distribution
    assert r == pytest.approx(np.full(4, 0.25))


def test_em_bits_from_invertible_reports_alone_is_their_histogram() -> None:
    mechanism = BIT_MECHANISMS["urap"]
    bits = np.array([[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 0]], dtype=np.uint8)
    r = em_bits(mechanism, np.packbits(bits, axis=1)).distribution
    assert r == pytest.approx([0, 0, 0.75, 0.25])


def test_em_bits_does_not_depend_on_its_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = UnaryEncoding(mask(20, 30), 2.0, sue_theta(2.0))
    payloads = perturbed(mechanism, 500, seed=8)
    whole = em_bits(mechanism, payloads)
    monkeypatch.setattr(likelihood, "_BITS_AT_ONCE", 137)
    chunked = em_bits(mechanism, payloads)
    assert chunked.iterations == whole.iterations
    assert chunked.distribution == pytest.approx(whole.distribution, abs=1e-9)


def test_em_bits_leaves_a_start_at_zero(bit_mechanism: UnaryEncoding) -> None:
    payloads = perturbed(bit_mechanism, 400, seed=9)
    uniform = em_bits(bit_mechanism, payloads, tolerance=1e-12, max_iterations=100_000)
    corner = em_bits(
        bit_mechanism, payloads, start=np.eye(bit_mechanism.size)[0], tolerance=1e-12, max_iterations=100_000
    )
    assert corner.distribution == pytest.approx(uniform.distribution, abs=1e-5)


@pytest.mark.parametrize(
    ("counts", "n", "message"),
    [([1, 2, 3], 5, "sum to 6 with n=5"), ([0, 0, 0], 0, "n=0"), ([1, 2], 3, "shape")],
)
def test_impossible_counts_are_refused(counts: list[int], n: int, message: str) -> None:
    channel = RandomizedResponse(mask(2, 3), 1.0).channel
    with pytest.raises(ValueError, match=message):
        exact_mle(channel, np.array(counts), n)
    with pytest.raises(ValueError, match=message):
        em(channel, np.array(counts), n)


def test_no_bits_have_no_estimate() -> None:
    with pytest.raises(ValueError, match="n=0"):
        em_bits(BIT_MECHANISMS["urap"], np.empty((0, 1), dtype=np.uint8))
