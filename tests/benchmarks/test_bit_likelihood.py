"""Maximum likelihood of bit reports against optimality conditions over all reports, a convex optimizer, and EM."""

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.bit_likelihood import maximize_bits
from tests.mechanisms.optima import numerical_optimum, optimality_gap
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding, sue_theta
from uldp.schemas.arrays import Counts, Floats

Bits = npt.NDArray[np.uint8]


def mask(sensitive: int, size: int) -> npt.NDArray[np.bool_]:
    return np.arange(size) < sensitive


def bit_matrix(mechanism: UnaryEncoding) -> tuple[Bits, Floats]:
    """All possible reports as rows of bits, and Q[x, y], from Definition 5."""
    k, channel = mechanism.size, mechanism.channel
    reports = np.array(list(product([0, 1], repeat=k)), dtype=np.uint8)
    one = np.where(np.eye(k, dtype=np.bool_), channel.p, channel.q)[:, np.newaxis]
    Q = np.where(reports, one, 1 - one).prod(axis=2)
    possible = Q.max(axis=0) > 0
    return reports[possible], Q[:, possible]


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


def test_the_maximum_of_bits_is_as_near_as_it_says(bit_mechanism: UnaryEncoding) -> None:
    reports, Q = bit_matrix(bit_mechanism)
    payloads = perturbed(bit_mechanism, 400, seed=6)
    counts = histogram(bit_mechanism, payloads, reports)
    fit = maximize_bits(bit_mechanism, payloads, gap=1e-7)
    assert fit.distribution.sum() == pytest.approx(1)
    assert optimality_gap(fit.distribution, Q, counts) == pytest.approx(fit.gap, abs=1e-12)
    assert fit.gap < 1e-7
    assert fit.distribution == pytest.approx(numerical_optimum(Q, counts), abs=1e-3)
