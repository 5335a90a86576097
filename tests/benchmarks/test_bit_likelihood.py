"""Maximum likelihood of bit reports against optimality conditions over all reports, a convex optimizer, and EM."""

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.bit_likelihood import maximize_bits
from tests.mechanisms.optima import numerical_optimum, optimality_gap
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding, sue_theta
from uldp.schemas.arrays import Floats

Bits = npt.NDArray[np.uint8]


def bit_matrix(mechanism: UnaryEncoding) -> tuple[Bits, Floats]:
    """All possible reports as rows of bits, and Q[x, y], from Definition 5."""
    k, channel = mechanism.size, mechanism.channel
    reports = np.array(list(product([0, 1], repeat=k)), dtype=np.uint8)
    one = np.where(np.eye(k, dtype=np.bool_), channel.p, channel.q)[:, np.newaxis]
    Q = np.where(reports, one, 1 - one).prod(axis=2)
    possible = Q.max(axis=0) > 0
    return reports[possible], Q[:, possible]


BIT_MECHANISMS = {
    "oue": UnaryEncoding(np.ones(3, dtype=np.bool_), 3.0, OUE_THETA),
    "urap": UnaryEncoding(np.array([False, True, False, True]), 1.0, sue_theta(1.0)),
}


@pytest.mark.parametrize("name", BIT_MECHANISMS)
def test_the_maximum_of_bits_is_as_near_as_it_says(name: str) -> None:
    mechanism, rng = BIT_MECHANISMS[name], np.random.default_rng(6)
    reports, Q = bit_matrix(mechanism)
    payloads = mechanism.perturb(rng.choice(mechanism.size, 400, p=rng.dirichlet(np.ones(mechanism.size))), rng)
    bits = np.unpackbits(payloads, axis=1, count=mechanism.size)
    counts = np.asarray((bits[:, np.newaxis] == reports).all(axis=2).sum(axis=0))
    fit = maximize_bits(mechanism, payloads, gap=1e-7)
    assert fit.distribution.sum() == pytest.approx(1)
    assert optimality_gap(fit.distribution, Q, counts) == pytest.approx(fit.gap, abs=1e-12)
    assert fit.gap < 1e-7
    assert fit.distribution == pytest.approx(numerical_optimum(Q, counts), abs=1e-3)
