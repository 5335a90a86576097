"""IDUE: each pair of values has the smaller of its two budgets, exactly, at the least sum of variances."""

from typing import Any

import numpy as np
import pytest
from scipy import optimize

from tests import build
from uldp.mechanisms.families.input_discriminative.randomizer import (
    RESOLUTION,
    Bits,
    InputDiscriminativeEncoding,
    best_bits,
)
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding, sue_theta
from uldp.mechanisms.protocol.mechanism import IMPROBABLE_TAIL, Privacy
from uldp.schemas.arrays import Symbols

CASES = [
    ((1.0,), (5,)),
    ((0.5, 1.0), (3, 3)),
    ((1.0, 4.0), (5, 95)),
    ((1.0, 4.0), (1, 99)),
    ((0.5, 1.0, 2.0), (5, 20, 75)),
    ((0.5, 0.9, 1.0, 6.0), (1, 1, 50, 1)),
    ((0.001, 20.0), (1, 9)),
    ((19.0, 20.0), (4, 5)),
]
each = pytest.mark.parametrize(("epsilons", "sizes"), CASES)


def groups(sizes: tuple[int, ...]) -> Symbols:
    return np.arange(len(sizes)).repeat(sizes)


def variance(bits: tuple[Bits, ...], sizes: tuple[int, ...]) -> float:
    """The sum of q (1-q)/(p-q)^2 over all symbols."""
    p, q = np.array(bits, dtype=np.float64).T / RESOLUTION
    return float((np.array(sizes) * q * (1 - q) / (p - q) ** 2).sum())


@pytest.mark.parametrize(("epsilons", "sizes"), [case for case in CASES if 0.1 < case[0][0] < 10])
def test_the_search_finds_the_least_variance_of_both_programs(
    epsilons: tuple[float, ...], sizes: tuple[int, ...]
) -> None:
    # opt1 is convex in log((1-q)/q), and opt2 in q: SciPy's solver finds their only minimum.
    L, m, found = len(epsilons), np.array(sizes), variance(best_bits(epsilons, sizes), sizes)
    least = np.minimum.outer(epsilons, epsilons)
    start = np.log((1 - 0.45) / 0.45 if epsilons[0] > 0.5 else 1.05)
    opt1 = optimize.minimize(
        lambda t: float((m / (4 * np.sinh(t / 2) ** 2)).sum()) / found,
        np.full(L, start),
        bounds=[(1e-3, None)] * L,
        constraints=[{"type": "ineq", "fun": lambda t: (least - np.add.outer(t, t)).ravel()}],
    )
    opt2 = optimize.minimize(
        lambda q: float((m * (1 / (1 - 2 * q) ** 2 - 1)).sum()) / found,
        np.full(L, 0.45),
        bounds=[(1e-6, 0.4999)] * L,
        constraints=[{"type": "ineq", "fun": lambda q: (q[:, np.newaxis] * np.exp(least) - 1 + q).ravel()}],
    )
    assert opt1.success
    assert opt2.success
    assert min(opt1.fun, opt2.fun) == pytest.approx(1, rel=1e-4)


@each
def test_it_is_never_worse_than_unary_encoding_with_the_least_epsilon(
    epsilons: tuple[float, ...], sizes: tuple[int, ...]
) -> None:
    k = sum(sizes)
    for theta in (OUE_THETA, sue_theta(epsilons[0])):
        other = UnaryEncoding(np.ones(k, dtype=np.bool_), epsilons[0], theta).channel
        assert variance(best_bits(epsilons, sizes), sizes) <= other.variance(np.zeros(k), 1).sum() * (1 + 1e-6)


def test_these_are_the_numbers_on_every_machine() -> None:
    assert best_bits((1.0, 4.0), (5, 95)) == (
        (5113823420520953, 3893375834220039),
        (6072824181681468, 2934375073059524),
    )


def test_possible_payloads_have_no_padding() -> None:
    mechanism = InputDiscriminativeEncoding([0.5, 3.0], groups((2, 1)))
    payloads = np.arange(256, dtype=np.uint8)[:, np.newaxis]
    assert payloads[mechanism.possible(payloads)].ravel().tolist() == list(range(0, 256, 32))


def test_improbable_reports_have_a_number_of_bits_that_is_rare_for_every_symbol() -> None:
    mechanism = InputDiscriminativeEncoding([0.5, 3.0], groups((20, 60)))
    low, high = mechanism.bit_totals.within(IMPROBABLE_TAIL)
    rng, inside = np.random.default_rng(1), []
    for symbol in (0, 79):
        totals = mechanism.form_and_totals(mechanism.perturb(np.full(50_000, symbol), rng))[1]
        z = (np.array([low, high]) - totals.mean()) / totals.std()
        inside.append(((low <= totals) & (totals <= high)).all())
        assert (np.abs(np.abs(z) - 5) < 1).all()  # 5e-7 on either side is 4.9 standard deviations
    assert all(inside)
    assert mechanism.inspect(np.full((1, 10), 255, dtype=np.uint8))[1].all()


SPEC: dict[str, Any] = {
    "domain": {"labels": ["flu", "cold", "hiv", "none"]},
    "mechanism": {"name": "idue", "groups": [{"epsilon": 4.0}, {"values": ["hiv"], "epsilon": 1.0}]},
}


def test_a_spec_names_groups_by_labels_or_indices() -> None:
    mechanism = build.pure_mechanism(build.spec(**SPEC))
    assert isinstance(mechanism, InputDiscriminativeEncoding)
    assert mechanism.group.tolist() == [1, 1, 0, 1]
    assert (mechanism.guarantee.privacy, mechanism.guarantee.epsilon) == (Privacy.ID_LDP, 4.0)
    written_out = [{"values": [2], "epsilon": 1.0}, {"values": [0, "cold", 3], "epsilon": 4.0}]
    assert (
        build.spec(**SPEC).device_digest
        == build.spec(**SPEC | {"mechanism": {"name": "idue", "groups": written_out}}).device_digest
    )


def test_a_group_of_one_value_has_no_pair() -> None:
    assert InputDiscriminativeEncoding([1.0, 4.0], groups((3, 1))).guarantee.epsilon == 1.0
