"""The guarantee of every mechanism, held against the reports that it sends.

``test_privacy`` and the tests of single mechanisms put exact probabilities into the definitions; here the probabilities
are those of many reports of each input, so that they hold for the code that draws. An event is that a report has moved
certain cells: no decoder sees more of it.
"""

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from tests.mechanisms.protocols import alternatives, examples
from uldp.mechanisms.families.local_hashing.randomizer import SeededHashing
from uldp.mechanisms.families.summation.randomizer import Summation
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.mechanism import Mechanism, Privacy, PureMechanism
from uldp.mechanisms.randomizers.fold import FoldedMechanism
from uldp.mechanisms.randomizers.memoized import Memoized
from uldp.mechanisms.randomizers.strata import Strata
from uldp.mechanisms.zones.nested_response import NestedResponse
from uldp.schemas.arrays import Counts, Mask

#: The laws depend on no version of Python or of a library: once is enough.
pytestmark = pytest.mark.slow

EXAMPLES = examples()
#: Almost no two reports of a Bloom filter are alike; ``test_strings`` has the probabilities of all of them.
PRIVATE = [
    name
    for name, of in EXAMPLES.items()
    if of.protocol.mechanism.guarantee.privacy is not Privacy.NONE and not name.startswith("bloom")
]
N = 20_000
#: The same for mechanisms whose reports hold a seed or magnitudes, so that almost every report has to be counted alone.
N_SEEDED = 7_000
#: Of a domain with more inputs, as the grid of a number, both ends and the middle.
MOST_INPUTS = 9

Law = tuple[Counts, Mask]


@cache
def laws(name: str) -> list[Law]:
    """Count the events of many reports of each input, for the inputs between which no report may tell.

    Returns:
        For each such group: the counts, shape (inputs, events), and which events are protected, shape (events,).
    """
    mechanism, rng = EXAMPLES[name].protocol.mechanism, default_rng(7)
    return [_law(mechanism, list(inputs), rng) for inputs in alternatives(mechanism)]


def _law(mechanism: Mechanism, inputs: list[Any], rng: np.random.Generator) -> Law:
    if len(inputs) > MOST_INPUTS:
        inputs = [inputs[0], inputs[len(inputs) // 2], inputs[-1]]
    n = N_SEEDED if _is_seeded(mechanism) else N
    payloads = np.concatenate([mechanism.perturb(np.repeat(np.array([symbol]), n, axis=0), rng) for symbol in inputs])
    kinds, kind = np.unique(payloads, axis=0, return_inverse=True)
    moved = np.array([as_dense(cells) for cells in mechanism.tally([kinds], np.arange(len(kinds)), len(kinds))])
    if isinstance(mechanism.bare, Summation):
        moved = moved > 0  # almost no two reports have the same magnitudes, which are independent of the symbol
    events, event = np.unique(moved, axis=0, return_inverse=True)
    of_report = np.repeat(np.arange(len(inputs)), n) * len(events) + event[kind.reshape(-1)].reshape(-1)
    counts = np.bincount(of_report, minlength=len(inputs) * len(events)).reshape(len(inputs), len(events))
    return counts, np.array([not _reveals(mechanism, cells).any() for cells in events])


def _is_seeded(mechanism: Mechanism) -> bool:
    parts = mechanism.parts if isinstance(mechanism, Strata) else [mechanism]
    return any(
        isinstance(part.once if isinstance(part, Memoized) else part, SeededHashing | Summation) for part in parts
    )


def _reveals(mechanism: Mechanism, cells: Counts) -> Mask:
    """Return which symbols a report reveals: those outside of Z_S whose cells it has moved."""
    if isinstance(mechanism, Strata):
        split = zip(mechanism.parts, mechanism.split_cells(cells), strict=True)
        return np.concatenate([_reveals(part, own) for part, (own, _) in split])
    if isinstance(mechanism, Memoized):
        return _reveals(mechanism.once, cells)
    if isinstance(mechanism, NestedResponse):
        values = mechanism.channel.size - len(mechanism.nests)
        return ~mechanism.sensitive[:values] & (cells[:values] > 0)
    if isinstance(mechanism, PureMechanism) and not isinstance(mechanism, FoldedMechanism):
        return ~mechanism.sensitive & (mechanism.fold(cells) > 0)
    return np.zeros(1, dtype=np.bool_)  # it reveals no symbol


def excess(counts: Counts, epsilon: float) -> float:
    """Return by how many standard errors an event's probability under one input exceeds e^epsilon times another's."""
    worst = -math.inf
    ratio = math.exp(epsilon)
    for one in counts:
        for other in counts:
            seen = one > 0
            z = (one - ratio * other)[seen] / np.sqrt(one + ratio**2 * other)[seen]
            worst = max(worst, float(z.max(initial=-math.inf)))
    return worst


def protected(name: str) -> Iterator[Counts]:
    for counts, mask in laws(name):
        yield counts[:, mask]


@pytest.mark.parametrize("name", PRIVATE)
def test_no_protected_report_is_too_probable_under_one_input(name: str) -> None:
    epsilon = EXAMPLES[name].protocol.mechanism.guarantee.epsilon
    assert epsilon is not None
    assert max(excess(counts, epsilon) for counts in protected(name)) < 5
    # The reports are enough to see that half of the budget would be exceeded.
    assert min(excess(counts, epsilon / 2) for counts in protected(name)) > 5


@pytest.mark.parametrize("name", PRIVATE)
def test_a_report_that_is_not_protected_has_one_input(name: str) -> None:
    privacy = EXAMPLES[name].protocol.mechanism.guarantee.privacy
    revealing = [counts[:, ~mask] for counts, mask in laws(name)]
    assert all((np.count_nonzero(counts, axis=0) == 1).all() for counts in revealing)
    assert any(counts.size for counts in revealing) == (privacy is Privacy.ULDP)
