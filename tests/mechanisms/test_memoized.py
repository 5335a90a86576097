"""Memoized: what it leaves as it is, what a report draws, and which mechanisms fit."""

import itertools
import math

import numpy as np
import pytest

from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding, sue_theta
from uldp.mechanisms.protocol.mechanism import Guarantee, Privacy, PureMechanism
from uldp.mechanisms.randomizers.memoized import Memoized
from uldp.schemas.arrays import Mask, Payloads

FAMILIES = ["symbols", "sue", "oue", "0.9"]
EVERYTHING = np.ones(3, dtype=np.bool_)


def build(family: str, sensitive: Mask, epsilon: float) -> PureMechanism:
    if family == "symbols":
        return RandomizedResponse(sensitive, epsilon)
    theta = {"sue": sue_theta(epsilon), "oue": OUE_THETA, "0.9": 0.9}[family]
    return UnaryEncoding(sensitive, epsilon, theta)


def parts(family: str, k: int, v: int, lasting: float, epsilon: float) -> tuple[PureMechanism, PureMechanism, Memoized]:
    sensitive = np.arange(k) >= k - v
    inner, once = build(family, sensitive, lasting), build(family, sensitive, epsilon)
    return inner, once, Memoized(inner, once)


def responses(mechanism: PureMechanism) -> Mask:
    """All responses as rows of bits, of which symbols have one."""
    if mechanism.partitions:
        return np.eye(mechanism.size, dtype=np.bool_)
    bits = np.array(list(itertools.product((0, 1), repeat=mechanism.size)), dtype=np.bool_)
    # Not ``possible``, which refuses responses that no device is likely to send.
    allowed: Mask = bits[bits[:, ~mechanism.sensitive].sum(axis=1) <= 1]
    return allowed


def as_payloads(mechanism: PureMechanism, bits: Mask) -> Payloads:
    return bits.argmax(axis=1).astype(np.uint32) if mechanism.partitions else np.packbits(bits, axis=1)


@pytest.mark.parametrize("family", FAMILIES)
def test_all_the_rest_is_that_of_the_mechanism_of_one_report(family: str) -> None:
    _, once, mechanism = parts(family, 3, 2, 2.0, 1.0)
    payloads = mechanism.perturb(np.arange(300) % 3, np.random.default_rng(1))
    assert mechanism.memory
    assert not once.memory
    assert mechanism.guarantee == Guarantee(Privacy.ULDP, 1.0, lasting=2.0)
    assert mechanism.once is once
    assert mechanism.form == once.form
    assert mechanism.statistic(payloads).tolist() == once.statistic(payloads).tolist()
    for own, other in zip(mechanism.inspect(payloads), once.inspect(payloads), strict=True):
        assert own.tolist() == other.tolist()
    assert mechanism.possible(payloads).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_budgets_send_the_permanent_response_itself(family: str) -> None:
    _, _, mechanism = parts(family, 3, 2, 1.0, 1.0)
    rng = np.random.default_rng(1)
    permanent = mechanism.permanent(np.arange(300) % 3, rng)
    assert mechanism.again(permanent, rng).tolist() == permanent.tolist()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_draws_of_a_report_do_not_depend_on_the_response(family: str) -> None:
    inner, _, mechanism = parts(family, 3, 2, 2.0, 1.0)
    rows = as_payloads(inner, responses(inner))
    states = set()
    for row in range(len(rows)):
        rng = np.random.default_rng(5)
        mechanism.again(rows[row : row + 1], rng)
        states.add(rng.random())
    assert len(states) == 1


def test_a_large_domain_is_perturbed_in_blocks() -> None:
    _, once, mechanism = parts("oue", 3000, 3000, 2.0, 1.0)
    n = 200
    counts = mechanism.statistic(mechanism.perturb(np.zeros(n, dtype=np.int64), np.random.default_rng(1)))
    total, q = counts[1:].sum(), once.channel.q[1]
    assert abs(total - 2999 * n * q) <= 5 * math.sqrt(2999 * n * q * (1 - q))


@pytest.mark.parametrize(
    ("inner", "once", "match"),
    [
        (RandomizedResponse(EVERYTHING, 1.0), RandomizedResponse(EVERYTHING, 1.01), "at most the lasting one"),
        (UnaryEncoding(EVERYTHING, 1.0, 0.5), UnaryEncoding(EVERYTHING, 1.01, 0.5), "at most the lasting one"),
        (UnaryEncoding(EVERYTHING, 1.0, 0.5), UnaryEncoding(EVERYTHING, 0.9, 0.99), "no noise gives the law"),
        (RandomizedResponse(EVERYTHING, 2.0), UnaryEncoding(EVERYTHING, 1.0, 0.5), "differ by their noise alone"),
        (
            RandomizedResponse(EVERYTHING, 2.0),
            RandomizedResponse(np.array([True, True, False]), 1.0),
            "differ by their noise alone",
        ),
    ],
)
def test_mechanisms_that_do_not_fit_are_refused(inner: PureMechanism, once: PureMechanism, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Memoized(inner, once)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_symbol_outside_of_the_domain_is_refused(family: str) -> None:
    _, _, mechanism = parts(family, 3, 2, 2.0, 1.0)
    with pytest.raises(ValueError, match="outside of the 3 symbols"):
        mechanism.perturb(np.array([3]), np.random.default_rng(1))
