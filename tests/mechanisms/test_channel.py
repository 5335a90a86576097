"""The moments and losses of the channel: against simulated devices, and against the published formulas."""

import math

import numpy as np
import pytest
from scipy import stats

from tests import build
from tests.mechanisms.estimates import estimate_of
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.estimators.likelihood import exact_mle
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding, sue_theta
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.schemas.arrays import Floats, Mask
from uldp.schemas.specs.estimators import OF_COUNTS

USERS = 300


def mask(k: int, v: int) -> Mask:
    return np.arange(k) >= k - v


def sue(k: int, v: int, epsilon: float) -> PureMechanism:
    return UnaryEncoding(mask(k, v), epsilon, sue_theta(epsilon))


def oue(k: int, v: int, epsilon: float) -> PureMechanism:
    return UnaryEncoding(mask(k, v), epsilon, OUE_THETA)


MECHANISMS = [
    pytest.param(RandomizedResponse(np.ones(6, dtype=np.bool_), None), id="identity"),
    pytest.param(RandomizedResponse(mask(2, 2), 1.0), id="warner"),
    pytest.param(RandomizedResponse(mask(2, 1), 0.5), id="mangat"),
    pytest.param(RandomizedResponse(mask(6, 6), 2.0), id="rr"),
    pytest.param(RandomizedResponse(mask(6, 2), 1.0), id="urr"),
    pytest.param(RandomizedResponse(mask(9, 4), 0.5), id="urr-9"),
    pytest.param(UnaryEncoding(mask(6, 6), 2.0, 0.7), id="rappor"),
    pytest.param(sue(6, 6, 1.0), id="sue"),
    pytest.param(oue(6, 6, 1.0), id="oue"),
    pytest.param(sue(6, 2, 1.0), id="urap"),
    pytest.param(sue(9, 4, 3.0), id="urap-9"),
    pytest.param(oue(6, 2, 2.0), id="uoue"),
]


def distribution(k: int) -> Floats:
    """Uneven, and 0 on one symbol."""
    squares = np.arange(k, dtype=np.float64) ** 2
    weights: Floats = squares / squares.sum()
    return weights


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_iid_values_add_their_sampling_variance(mechanism: PureMechanism) -> None:
    # Law of total variance: Var = E[Var | values] + Var[histogram], and both terms are linear in 1/n.
    r = distribution(mechanism.size)
    given, total = mechanism.channel.variance_given_values(r, USERS), mechanism.channel.variance(r, USERS)
    np.testing.assert_allclose(total, given + r * (1 - r) / USERS, rtol=1e-9, atol=1e-15)


CLOSED_FORMS = [(7, 3, 0.5), (7, 3, 1.0), (7, 3, 4.0), (5, 1, 2.0), (50, 20, math.log(50))]


@pytest.mark.parametrize(("k", "v", "epsilon"), CLOSED_FORMS)
def test_losses_of_urr_are_equations_12_and_46(k: int, v: int, epsilon: float) -> None:
    p, n = distribution(k), 1000
    p_S, p_N = p[mask(k, v)], p[~mask(k, v)]
    E = math.exp(epsilon)
    w = E - 1  # u' of the paper
    ratio = (v + E - 1) / w  # its v
    l1 = math.sqrt(2 / (n * math.pi)) * (
        np.sqrt((p_S + 1 / w) * (ratio - p_S - 1 / w)).sum() + np.sqrt(p_N * (ratio - p_N)).sum()
    )
    l2 = (2 * (E - 1) * (v - p_S.sum()) + v * (v - 1)) / (n * (E - 1) ** 2) + (1 - (p**2).sum()) / n

    channel = RandomizedResponse(mask(k, v), epsilon).channel
    assert channel.expected_l1(p, n) == pytest.approx(l1, rel=1e-9)
    assert channel.variance(p, n).sum() == pytest.approx(l2, rel=1e-9)


@pytest.mark.parametrize(("k", "v", "epsilon"), CLOSED_FORMS)
def test_losses_of_urap_are_equations_17_and_48(k: int, v: int, epsilon: float) -> None:
    p, n = distribution(k), 1000
    p_S, p_N = p[mask(k, v)], p[~mask(k, v)]
    root = math.exp(epsilon / 2)
    w, v_N = root - 1, root / (root - 1)
    l1 = math.sqrt(2 / (n * math.pi)) * (np.sqrt((p_S + 1 / w) * (v_N - p_S)).sum() + np.sqrt(p_N * (v_N - p_N)).sum())
    l2 = (1 + ((v + 1) * root - 1) / w**2 - p_S.sum() / w - (p**2).sum()) / n

    channel = sue(k, v, epsilon).channel
    assert channel.expected_l1(p, n) == pytest.approx(l1, rel=1e-9)
    assert channel.variance(p, n).sum() == pytest.approx(l2, rel=1e-9)


@pytest.mark.parametrize(("n", "most"), [(20, 0.99), (100, 0.975)])
def test_interval_covers_at_its_level_or_more(n: int, most: float) -> None:
    # Exact coverage at level 0.95 for each r; it oscillates above the level with the binomial's steps.
    channel = sue(2, 1, 1.0).channel
    counts = np.arange(n + 1)
    for symbol in (0, 1):
        lower, upper = np.array(
            [[end[symbol] for end in estimate_of(channel, np.full(2, c), n).interval(0.95)] for c in counts]
        ).T
        coverage = []
        for r in np.linspace(0, 1, 181):
            m = channel.support_probability(np.full(2, r))[symbol]
            inside = (lower <= r + 1e-12) & (r - 1e-12 <= upper)
            coverage.append(stats.binom.pmf(counts, n, m)[inside].sum())
        assert min(coverage) > 0.95 - 1e-9
        assert np.mean(coverage) < most


@pytest.mark.parametrize("name", ["uhr", "ubd", "uss"])
def test_interval_of_many_reports_is_normal_where_names_count_too(name: str) -> None:
    # A report supports a sensitive symbol with probability m, or names another one with f, never both: their
    # covariance is -m f / n.
    spec = build.spec(domain={"size": 8}, sensitive=[0, 1, 2, 3], mechanism={"name": name, "epsilon": 1.0})
    channel = build.pure_mechanism(spec).channel
    assert channel.q_non_sensitive is not None
    r, n = distribution(8), 10**8
    m = channel.support_probability(r)
    f, sensitive = m[4:].sum(), slice(4)
    weight = (channel.q - channel.q_non_sensitive)[sensitive] * r[4:].sum() / f
    own = m[sensitive]
    squares = own * (1 - own) + weight**2 * f * (1 - f) - 2 * weight * own * f
    half = stats.norm.ppf(0.975) * np.sqrt(squares / n) / channel.gain[sensitive]
    low, high = estimate_of(channel, np.rint(n * m).astype(np.int64), n).interval(0.95)
    np.testing.assert_allclose(high[sensitive] - r[sensitive], half, rtol=2e-3)
    np.testing.assert_allclose(r[sensitive] - low[sensitive], half, rtol=2e-3)


@pytest.mark.parametrize(
    ("p", "q"), [([0.5], [0.5]), ([0.4], [0.5]), ([1.1], [0.5]), ([0.5], [-0.1]), ([0.5, math.nan], [0.1, 0.1])]
)
def test_a_channel_must_carry_its_symbols(p: list[float], q: list[float]) -> None:
    with pytest.raises(ValueError, match="0 <= q < p <= 1"):
        Channel(np.array(p), np.array(q), independent_bits=False)


@pytest.mark.parametrize(("p", "q"), [([0.5, 0.5], [0.1]), (0.5, 0.1), ([[0.5]], [[0.1]])])
def test_p_and_q_must_be_vectors_of_one_length(p: list[float], q: list[float]) -> None:
    with pytest.raises(ValueError, match="vectors of one length"):
        Channel(np.array(p), np.array(q), independent_bits=False)


def test_a_report_of_several_symbols_supports_as_many_and_counts_do_not_determine_the_likelihood() -> None:
    spec = build.spec(domain={"size": 5}, mechanism={"name": "ss", "epsilon": 0.5})
    decoder, counts = build_protocol(spec).decoder, np.array([10, 4, 3, 2, 1])
    decoder.check(counts, 10)
    assert decoder.estimators == OF_COUNTS
    with pytest.raises(ValueError, match="a report supports 2 symbols, but the counts sum to 21 with n = 10"):
        decoder.check(counts + np.eye(5, dtype=np.int64)[1], 10)
    with pytest.raises(ValueError, match="counts do not determine"):
        exact_mle(build.pure_mechanism(spec).channel, counts, 10)


@pytest.mark.parametrize(("p", "independent_bits"), [([0.5, 0.5, 0.5], True), ([0.5, 0.6, 0.5], False)])
def test_a_channel_of_several_symbols_has_one_p_and_dependent_bits(p: list[float], independent_bits: bool) -> None:
    with pytest.raises(ValueError, match="several supported symbols"):
        Channel(np.array(p), np.full(3, 0.1), independent_bits, supported=2)
