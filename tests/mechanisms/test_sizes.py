"""Collections of sets in which some users report the size: the law of the ranges, the flag, the draws."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.encodings.set_encoding import SizeRanges
from uldp.mechanisms.families.sets.spec import MOST_CUT, ranges_of
from uldp.mechanisms.inference.plausibility import ALARM_LEVEL
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.arrays import Counts, Symbols
from uldp.schemas.flags import Flag
from uldp.schemas.specs.collection import CollectionSpec

OF = {"set": {"set": {"of": {"size": 12}, "at_most": 3}}}
OF["pairs"] = {"pairs": {"of": {"size": 12}, "at_most": 3, "low": 0.0, "high": 1.0}}


def sized(name: str = "set-ss", epsilon: float = 1.0, domain: str = "set", **parameters: Any) -> CollectionSpec:
    mechanism = {"name": name, "epsilon": epsilon, "sizes": 0.2, **parameters}
    return build.spec(domain=OF[domain], mechanism=mechanism)


def sets_of(sizes: Counts, items: int, seed: int) -> Symbols:
    """Uniform sets of these sizes."""
    order = default_rng(seed).permuted(np.tile(np.arange(items), (len(sizes), 1)), axis=1)
    return np.where(np.arange(items) < sizes[:, np.newaxis], order, -1)


def cells_of(protocol: LdpProtocol, sets: Symbols, seed: int, *, pairs: bool = False) -> Counts:
    values = np.stack([sets, np.full(sets.shape, 0.25)], axis=2) if pairs else sets
    held = [Held(values, np.full(len(sets), -1))]
    return protocol.mechanism.statistic(protocol.perturb(held, default_rng(seed)))


@pytest.mark.parametrize("held", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("width", [1, 2, 3, 5, 40])
def test_a_range_begins_where_sets_are_cut(held: int, width: int) -> None:
    ranges = SizeRanges(held, width)
    of = [ranges.of(size) for size in range(3 * held)]
    assert of == sorted(of)
    assert ranges.of(held) < ranges.first_cut == ranges.of(held + 1)
    assert ranges.of(2 * held) == ranges.of(99 * held) == ranges.count - 1
    assert [ranges.of(int(name.split()[0])) for name in ranges.names] == [*range(ranges.count)]


@pytest.mark.parametrize(("held", "epsilon"), [(1, 0.1), (3, 1.0), (8, 1.0), (8, 4.0), (256, 0.5)])
def test_ranges_are_the_narrowest_for_which_randomized_response_is_best(held: int, epsilon: float) -> None:
    ranges = ranges_of(held, epsilon)
    assert ranges.count < max(3 * math.exp(epsilon) + 2, 3)
    assert ranges.width == 1 or SizeRanges(held, ranges.width - 1).count >= max(3 * math.exp(epsilon) + 2, 3)


def test_sets_are_called_cut_if_more_than_a_tenth_of_the_users_hold_more() -> None:
    protocol, n = build_protocol(sized()), 100_000
    for cut, flagged in ((0.3, True), (0.05, False)):
        sizes = np.where(default_rng(4).random(n) < cut, 5, 1)
        p_value = protocol.decoder.p_values(cells_of(protocol, sets_of(sizes, 12, 5), 6), n)[Flag.SETS_CUT]
        assert (p_value < ALARM_LEVEL) == flagged
    assert MOST_CUT == 0.1


def test_a_tenth_of_cut_sets_raises_the_flag_as_seldom_as_its_p_value_says() -> None:
    protocol = build_protocol(sized(epsilon=2.0, sizes=0.5))
    sizes = np.where(np.arange(2000) < 200, 5, 2)
    p_values = np.array(
        [
            protocol.decoder.p_values(cells_of(protocol, sets_of(sizes, 12, seed), seed), 2000)[Flag.SETS_CUT]
            for seed in range(400)
        ]
    )
    for level in (0.5, 0.1, 0.01):
        assert (p_values <= level).mean() <= level + 4 * math.sqrt(level * (1 - level) / 400)
