"""A channel whose reports support w > 1 symbols each, against sums over all reports."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import optimize

from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.estimators.by_name import empirical, norm_sub
from uldp.mechanisms.estimators.likelihood import exact_mle
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.inference.plausibility import fit_counts
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.specs.estimators import OF_COUNTS

P = 0.7
SIZES = [(3, 2), (4, 2), (5, 2), (6, 3), (7, 4)]


def subsets(k: int, w: int) -> Floats:
    """All sets of w of k symbols; rows are sets."""
    return np.array([np.isin(np.arange(k), chosen) for chosen in combinations(range(k), w)], dtype=np.float64)


def likelihoods(k: int, w: int) -> Floats:
    """Pr(set | symbol): a set with the true symbol has a total of P; rows are sets."""
    own = subsets(k, w)
    found: Floats = np.where(own, P / own[:, 0].sum(), (1 - P) / (1 - own[:, 0]).sum())
    return found


def channel(k: int, w: int) -> Channel:
    p, q = P, (P * (w - 1) + (1 - P) * w) / (k - 1)
    return Channel(np.full(k, p), np.full(k, q), independent_bits=False, supported=w)


def decoder(k: int, w: int) -> PureDecoder:
    mechanism = SubsetSelection(k, math.log(P * (k - w) / ((1 - P) * w)), w)
    return PureDecoder(mechanism, Pum(np.ones(k, dtype=np.bool_), (), np.empty((0, k)), np.empty(0)))


def covariance(k: int, w: int, r: Floats) -> Floats:
    """Cov[y], for true symbols that are drawn i.i.d. from r."""
    sets, weights = subsets(k, w), likelihoods(k, w) @ r
    mean = weights @ sets
    return (sets * weights[:, np.newaxis]).T @ sets - np.outer(mean, mean)


def window(k: int, w: int, n: int, seed: int) -> Counts:
    """Support counts of n reports that lie near the boundary: two symbols have no devices."""
    rng = np.random.default_rng(seed)
    r = np.append(rng.dirichlet(np.ones(k - 2)), [0, 0])
    return (rng.multinomial(n, likelihoods(k, w) @ r) @ subsets(k, w)).astype(np.int64)


@pytest.mark.parametrize(("k", "w"), SIZES)
def test_the_fit_is_the_nearest_distribution(k: int, w: int) -> None:
    n, counts = 2000, window(k, w, 2000, seed=k)
    unbiased = empirical(channel(k, w), counts, n)
    nearest = norm_sub(channel(k, w), counts, n)

    def inverse(r: Floats) -> Floats:
        given_values = sum(r[z] * covariance(k, w, np.eye(k)[z]) for z in range(k))
        return np.asarray(n * channel(k, w).gain[0] ** 2 * np.linalg.pinv(given_values))

    for _ in range(30):  # until weights at r give the same r
        precision = inverse(nearest)
        found = optimize.minimize(
            lambda r, precision: (unbiased - r) @ precision @ (unbiased - r),
            nearest,
            (precision,),
            bounds=[(0, None)] * k,
            constraints={"type": "eq", "fun": lambda r: r.sum() - 1},
            options={"ftol": 1e-14},
        )
        nearest = np.maximum(found.x, 0) / np.maximum(found.x, 0).sum()
    fit = fit_counts(channel(k, w), counts, n)
    assert fit is not None
    assert fit.statistic == pytest.approx(found.fun, rel=1e-4, abs=1e-4)
    assert fit.degrees == np.count_nonzero(nearest < 1e-6)


def test_each_report_supports_the_same_number() -> None:
    decoder(5, 2).check(np.array([10, 4, 3, 2, 1]), 10)
    with pytest.raises(ValueError, match="a report supports 2 symbols, but the counts sum to 21 with n = 10"):
        decoder(5, 2).check(np.array([10, 5, 3, 2, 1]), 10)


def test_counts_do_not_determine_the_likelihood() -> None:
    assert decoder(5, 2).estimators == OF_COUNTS
    with pytest.raises(ValueError, match="counts do not determine"):
        exact_mle(channel(5, 2), np.array([10, 4, 3, 2, 1]), 10)


@pytest.mark.parametrize(
    ("p", "independent_bits"), [([0.5, 0.5, 0.5], True), ([0.5, 0.6, 0.5], False)], ids=["independent", "unequal"]
)
def test_a_channel_of_several_symbols_has_one_p_and_dependent_bits(p: list[float], independent_bits: bool) -> None:
    with pytest.raises(ValueError, match="several supported symbols"):
        Channel(np.array(p), np.full(3, 0.1), independent_bits, supported=2)
