"""Memoized over mechanisms with uniform noise: the law of one report and of many, by enumeration."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pytest

from uldp.mechanisms.families.block.randomizer import Block
from uldp.mechanisms.families.duchi.randomizer import Duchi
from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.kernels.hashing import hash_symbols
from uldp.mechanisms.protocol.noise import UniformNoise
from uldp.mechanisms.randomizers.memoized import Memoized
from uldp.schemas.arrays import Floats, Mask, Payloads

BUDGETS = [(3.0, 1.0), (1.0, 0.9), (0.02, 0.01), (20.0, 0.5), (8.0, 8.0), (20.0, 19.0)]


#: ``Block`` rounds the probability of noise up to a multiple of 2^-53.
ROUNDING = 2**-53


@dataclass(frozen=True)
class Family:
    """Mechanisms that differ in epsilon alone.

    Attributes:
        build: Builds one of this epsilon.
        payloads: All payloads; of hashes, those of some seeds.
        likelier: Shape (symbols, payloads): which payloads are E times as probable as the others.
    """

    build: Callable[[float], UniformNoise]
    payloads: Payloads
    likelier: Mask


def subsets(k: int, w: int) -> Family:
    bits = np.array([row for row in itertools.product((False, True), repeat=k) if sum(row) == w])
    return Family(lambda epsilon: SubsetSelection(k, epsilon, w), np.packbits(bits, axis=1), bits.T)


def hashes(k: int, g: int) -> Family:
    seeds, buckets = (grid.reshape(-1) for grid in np.meshgrid([0, 7, 2**32 - 1], np.arange(g), indexing="ij"))
    words = np.column_stack([seeds.astype("<u4")]).view(np.uint8), np.column_stack([buckets.astype("<u2")])
    payloads = np.hstack([words[0], words[1].view(np.uint8)])
    likelier = np.array([hash_symbols(seeds, np.full(len(seeds), symbol), g) == buckets for symbol in range(k)])
    return Family(lambda epsilon: LocalHashing(k, epsilon, g), payloads, likelier)


def blocks(grid: int, width: int) -> Family:
    i, j = np.ogrid[: grid + 1, : grid + width]
    return Family(
        lambda epsilon: Block(epsilon, grid, width),
        np.arange(grid + width, dtype=np.uint32),
        (i <= j) & (j < i + width),
    )


FAMILIES = {
    "ss of 2": subsets(5, 2),
    "ss of 1": subsets(3, 1),
    "olh": hashes(6, 3),
    "duchi": Family(lambda epsilon: Duchi(epsilon, 1), np.arange(2, dtype=np.uint32), np.eye(2, dtype=np.bool_)),
    "block": blocks(4, 3),
    "block of width 1": blocks(2, 1),
}
each = pytest.mark.parametrize("name", FAMILIES)
budgets = pytest.mark.parametrize(("lasting", "epsilon"), BUDGETS)


def memoized(name: str, lasting: float, epsilon: float) -> Memoized:
    build = FAMILIES[name].build
    return Memoized(build(lasting), build(epsilon))


def law(name: str, epsilon: float) -> Floats:
    """The published law: the probability of each payload (columns) for each symbol (rows)."""
    weights = np.where(FAMILIES[name].likelier, math.exp(epsilon), 1.0)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def drawn_law(name: str, mechanism: UniformNoise) -> Floats:
    """The law from which a mechanism draws, if it is uniform with the probability that it says."""
    likelier = FAMILIES[name].likelier
    noise = mechanism.uniform_probability
    return np.asarray(noise / likelier.shape[1] + (1 - noise) * likelier / likelier.sum(axis=1, keepdims=True))


def law_again(name: str, replaced: float) -> Floats:
    """The probability of each payload (columns) for each permanent one (rows)."""
    n = len(FAMILIES[name].payloads)
    return replaced / n + (1 - replaced) * np.eye(n)


def law_of_reports(name: str, lasting: float, epsilon: float, t: int) -> Floats:
    """The probability of each sequence of t reports of one symbol (columns) for each symbol (rows)."""
    again = law_again(name, memoized(name, lasting, epsilon).noise[0])
    sequences = reduce(
        lambda joint, _: (joint[:, :, None] * again[:, None]).reshape(len(again), -1), range(t - 1), again
    )
    return np.asarray(drawn_law(name, FAMILIES[name].build(lasting)) @ sequences)


def spent(Q: Floats) -> float:
    """The largest log-ratio of the probabilities of an event under two symbols."""
    possible = Q[:, Q.any(axis=0)]
    return float(np.log(possible.max(axis=0) / possible.min(axis=0)).max())


@each
@budgets
def test_one_report_has_the_published_law_at_epsilon(name: str, lasting: float, epsilon: float) -> None:
    np.testing.assert_allclose(law_of_reports(name, lasting, epsilon, 1), law(name, epsilon), rtol=1e-11, atol=ROUNDING)


@each
@budgets
def test_many_reports_spend_more_and_never_more_than_the_lasting_budget(
    name: str, lasting: float, epsilon: float
) -> None:
    budgets = [spent(law_of_reports(name, lasting, epsilon, t)) for t in (1, 2, 3)]
    assert (np.diff(budgets) >= -1e-12 * lasting).all()
    assert epsilon * (1 - 1e-8) <= budgets[0] <= epsilon * (1 + 1e-12)
    assert budgets[-1] <= lasting * (1 + 1e-12)
    guarantee = memoized(name, lasting, epsilon).guarantee
    assert (guarantee.epsilon, guarantee.lasting) == (epsilon, lasting)


@pytest.mark.parametrize("name", ["ss of 1", "duchi", "block of width 1"])
def test_ever_more_reports_spend_the_lasting_budget(name: str) -> None:
    budgets = [spent(law_of_reports(name, 2.0, 1.0, t)) for t in (1, 2, 4, 8)]
    assert budgets[0] < budgets[1] < budgets[2] < budgets[3] < 2.0
    assert budgets[3] > 1.99


@each
def test_equal_budgets_send_the_permanent_response_itself(name: str) -> None:
    mechanism, rng = memoized(name, 1.0, 1.0), np.random.default_rng(1)
    permanent = mechanism.permanent(np.arange(300) % mechanism.size, rng)
    assert mechanism.again(permanent, rng).tolist() == permanent.tolist()


@each
def test_the_draws_of_a_report_do_not_depend_on_the_response(name: str) -> None:
    mechanism, states = memoized(name, 2.0, 1.0), set()
    for response in FAMILIES[name].payloads:
        rng = np.random.default_rng(5)
        mechanism.again(response[np.newaxis], rng)
        states.add(rng.random())
    assert len(states) == 1


def test_the_noise_of_a_small_epsilon_is_exact_to_the_noise_of_block() -> None:
    # At the least epsilon, a' is 1 but for 2e-7: a report must not have less noise than the mechanism at epsilon.
    once, inner = Block(1e-6, 100, 20), Block(0.5, 100, 20)
    (t,) = Memoized(inner, once).noise
    assert t == pytest.approx(1 - (1 - once.noise) / (1 - inner.noise), abs=2**-53)


@pytest.mark.parametrize(
    ("inner", "once"),
    [
        (SubsetSelection(9, 2.0, 1), SubsetSelection(9, 1.0, 2)),
        (LocalHashing(9, 2.0, 4), LocalHashing(9, 1.0, 3)),
        (Block(2.0, 8, 2), Block(1.0, 8, 3)),
        (Block(2.0, 8, 3), Block(1.0, 9, 2)),
        (Duchi(2.0), Duchi(1.0, 1)),
        (Duchi(2.0, 1), Block(1.0, 1, 1)),
    ],
)
def test_mechanisms_that_differ_by_more_than_noise_are_refused(inner: UniformNoise, once: UniformNoise) -> None:
    with pytest.raises(ValueError, match="must differ by their noise alone"):
        Memoized(inner, once)


def test_a_mechanism_without_uniform_noise_or_bits_is_refused() -> None:
    twice = memoized("duchi", 2.0, 1.0)
    with pytest.raises(ValueError, match="needs uniform noise, or bits with noise of their own"):
        Memoized(twice, twice)


@each
def test_a_lasting_budget_below_that_of_a_report_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="at most the lasting one"):
        memoized(name, 1.0, 1.01)
