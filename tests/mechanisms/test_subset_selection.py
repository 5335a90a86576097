"""Subset selection: p and q as published, its payloads, and what is refused."""

import math
from itertools import combinations, product

import numpy as np
import numpy.typing as npt
import pytest

from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.mechanism import Guarantee, Privacy
from uldp.schemas.arrays import Packed

CASES = [(2, 1.0), (5, 0.01), (6, 0.5), (8, 1.0), (9, 0.1), (10, math.log(3)), (10, 20.0), (10, 50.0)]


def sets(k: int, w: int) -> npt.NDArray[np.bool_]:
    return np.array([np.isin(np.arange(k), chosen) for chosen in combinations(range(k), w)])


@pytest.mark.parametrize(("k", "epsilon"), [*CASES, (625, 1.0)])
def test_the_channel_is_the_published_one(k: int, epsilon: float) -> None:
    E, mechanism = math.exp(epsilon), SubsetSelection(k, epsilon)
    w = max(round(k / (E + 1)), 1)
    p = w * E / (w * E + k - w)
    assert mechanism.chosen == mechanism.channel.supported == w
    assert mechanism.channel.p == pytest.approx(p, rel=1e-12)
    assert mechanism.channel.q == pytest.approx(p * (w - 1) / (k - 1) + (1 - p) * w / (k - 1), rel=1e-12, abs=1e-16)
    assert mechanism.guarantee == Guarantee(Privacy.LDP, epsilon)


@pytest.mark.parametrize(("k", "epsilon"), [(100, 0.5), (100, 1.0), (625, 1.0), (625, 3.0)])
def test_no_other_size_has_a_much_smaller_variance(k: int, epsilon: float) -> None:
    def error(w: int) -> float:
        p = w * math.exp(epsilon) / (w * math.exp(epsilon) + k - w)
        q = (p * (w - 1) + (1 - p) * w) / (k - 1)
        return float(Channel(np.full(k, p), np.full(k, q), False, w).variance(np.full(k, 1 / k), 1).sum())

    assert error(SubsetSelection(k, epsilon).chosen) <= 1.001 * min(map(error, range(1, k // 2)))


@pytest.mark.parametrize("k", [2, 7, 8, 9, 11])
def test_possible_payloads_are_sets_of_w_without_padding(k: int) -> None:
    mechanism = SubsetSelection(k, 0.3)
    width = -(-k // 8)
    payloads: Packed = np.array(list(product(range(256), repeat=width)), dtype=np.uint8)
    possible = np.packbits(sets(k, mechanism.chosen), axis=1)
    assert payloads[mechanism.possible(payloads)].tolist() == sorted(possible.tolist())
