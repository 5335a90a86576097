"""Proposition 11 of Murakami & Kawamoto (2019), held against the probabilities that the mechanisms draw from.

``test_exact_guarantee`` has the guarantee of every mechanism over its own symbols.
"""

import itertools
import math

import numpy as np
import pytest

from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding, sue_theta
from uldp.schemas.arrays import Floats, Mask

EPSILONS = [0.01, 0.5, 1.0, math.log(625), 20.0, 50.0]


def symbol_reports(mechanism: RandomizedResponse) -> tuple[Floats, Mask]:
    """Q(y|x), rows x and columns y, with the columns that are in Y_P = Z_S (Proposition 4)."""
    noise = mechanism.noise_probability
    uniform = np.where(mechanism.sensitive, 1 / mechanism.sensitive.sum(), 0.0)
    return noise * uniform + (1 - noise) * np.eye(mechanism.size), mechanism.sensitive


def bit_reports(mechanism: UnaryEncoding) -> tuple[Floats, Mask]:
    """Q(y|x), rows x and columns y in {0, 1}^k that can be produced, with the columns that are in Y_P (eq. 8)."""
    k = mechanism.size
    y = np.array(list(itertools.product((0, 1), repeat=k)), dtype=np.bool_)
    y = y[mechanism.possible(np.packbits(y, axis=1))]
    own = np.eye(k, dtype=np.bool_)
    # Pr(y_j = 0 | x) and Pr(y_j = 1 | x), rows x and columns j.
    zero = np.where(own, mechanism.cleared_probability, 1 - mechanism.channel.q)
    one = np.where(own, mechanism.channel.p, mechanism.channel.q)
    Q = np.where(y, one[:, None, :], zero[:, None, :]).prod(axis=2)
    protected: Mask = y[:, ~mechanism.sensitive].sum(axis=1) == 0
    return Q, protected


def assert_uldp(Q: Floats, protected: Mask, sensitive: Mask, epsilon: float) -> None:
    """Check equations (4) and (5), with rows of Q in the order of ``sensitive``."""
    np.testing.assert_allclose(Q.sum(axis=1), 1, rtol=1e-12)
    # (4): a report in Y_I comes from one value alone, a non-sensitive one.
    sources = Q[:, ~protected] > 0
    assert (sources.sum(axis=0) == 1).all()
    assert not sources[sensitive].any()
    # (5): within Y_P, any two values differ by no more than e^epsilon.
    assert Q[:, protected].min() > 0
    assert worst_ratio(Q, protected) <= math.exp(epsilon) * (1 + 1e-12)


def worst_ratio(Q: Floats, protected: Mask) -> float:
    """Largest Q(y|x) / Q(y|x') over x, x' and y in Y_P."""
    return float((Q[:, protected].max(axis=0) / Q[:, protected].min(axis=0)).max())


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("hidden", [{0: 0}, {0: 0, 1: 1}, {0: 1, 1: 1, 3: 0}])
def test_pum_extends_the_protection_to_the_users_own_values(hidden: dict[int, int], epsilon: float) -> None:
    # Proposition 11 over X = {0, ..., 3} with X_S = {3} and two bots, symbols 4 and 5.
    z_sensitive = np.array([False, False, False, True, True, True])
    f_pre = [hidden[x] + 4 if x in hidden else x for x in range(4)]
    sensitive = np.array([x == 3 or x in hidden for x in range(4)])
    for Q, protected in (
        symbol_reports(RandomizedResponse(z_sensitive, epsilon)),
        bit_reports(UnaryEncoding(z_sensitive, epsilon, sue_theta(epsilon))),
    ):
        produced = Q[f_pre].any(axis=0)  # no input is left that reveals a hidden value
        assert_uldp(Q[f_pre][:, produced], protected[produced], sensitive, epsilon)
