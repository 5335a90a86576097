"""Memoized over mechanisms with uniform noise: which may be so, and what a report draws."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from uldp.mechanisms.families.block.randomizer import Block
from uldp.mechanisms.families.duchi.randomizer import Duchi
from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.protocol.noise import UniformNoise
from uldp.mechanisms.randomizers.memoized import Memoized
from uldp.schemas.arrays import Payloads


@dataclass(frozen=True)
class Family:
    """Mechanisms that differ in epsilon alone.

    Attributes:
        build: Builds one of this epsilon.
        payloads: All payloads; of hashes, those of some seeds.
    """

    build: Callable[[float], UniformNoise]
    payloads: Payloads


def subsets(k: int, w: int) -> Family:
    bits = np.array([row for row in itertools.product((False, True), repeat=k) if sum(row) == w])
    return Family(lambda epsilon: SubsetSelection(k, epsilon, w), np.packbits(bits, axis=1))


def hashes(k: int, g: int) -> Family:
    seeds, buckets = (grid.reshape(-1) for grid in np.meshgrid([0, 7, 2**32 - 1], np.arange(g), indexing="ij"))
    words = np.column_stack([seeds.astype("<u4")]).view(np.uint8), np.column_stack([buckets.astype("<u2")])
    return Family(lambda epsilon: LocalHashing(k, epsilon, g), np.hstack([words[0], words[1].view(np.uint8)]))


def blocks(grid: int, width: int) -> Family:
    return Family(lambda epsilon: Block(epsilon, grid, width), np.arange(grid + width, dtype=np.uint32))


FAMILIES = {
    "ss of 2": subsets(5, 2),
    "ss of 1": subsets(3, 1),
    "olh": hashes(6, 3),
    "duchi": Family(lambda epsilon: Duchi(epsilon, 1), np.arange(2, dtype=np.uint32)),
    "block": blocks(4, 3),
    "block of width 1": blocks(2, 1),
}
each = pytest.mark.parametrize("name", FAMILIES)


def memoized(name: str, lasting: float, epsilon: float) -> Memoized:
    build = FAMILIES[name].build
    return Memoized(build(lasting), build(epsilon))


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
