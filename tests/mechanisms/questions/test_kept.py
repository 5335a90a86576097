"""Errors over windows of devices that keep their responses: as published, and as simulated with the devices' code."""

from itertools import permutations

import numpy as np
import pytest
from numpy.random import default_rng

from tests.mechanisms.protocols import Example, examples
from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import PureMechanism, WithMemory
from uldp.mechanisms.questions.span import of_same_devices, repeats
from uldp.mechanisms.randomizers.memoized import Memoized
from uldp.schemas.arrays import Counts, Floats

KEPT = {name: example for name, example in examples().items() if example.protocol.mechanism.memory}
SHARES = [
    name
    for name, example in KEPT.items()
    if isinstance(example.protocol.mechanism, Memoized)
    and isinstance(example.protocol.mechanism.once, PureMechanism)
    and "levels" not in name
]
N, WINDOWS, RUNS = 200, 4, 300


def simulated(example: Example, runs: int = RUNS, seed: int = 1) -> list[list[Counts]]:
    """The cells of windows of ``runs`` groups of N devices, which keep their values and responses in all windows."""
    rng, mechanism = default_rng(seed), example.protocol.mechanism
    assert isinstance(mechanism, WithMemory)
    symbols = example.protocol.encoding.encode(example.hold(rng, runs * N), rng)
    kept, groups = mechanism.permanent(symbols, rng), np.repeat(np.arange(runs), N)
    cells = [mechanism.tally([mechanism.again(kept, rng)], groups, runs) for _ in range(WINDOWS)]
    return [[as_dense(of_window[run]) for of_window in cells] for run in range(runs)]


#: The summed cells of windows, and the number of reports of each.
Windows = tuple[Counts, tuple[int, ...]]


def summed(protocol: LdpProtocol, windows: Windows) -> Estimate:
    """The estimate of windows of the same devices together."""
    cells, sizes = windows
    return protocol.decoder.linear(cells, sum(sizes), repeats(sizes) if protocol.mechanism.memory else 0.0)


def difference(protocol: LdpProtocol, first: Windows, other: Windows, *, same_devices: bool = False) -> Estimate:
    """The first windows together less the other ones."""
    after, before = summed(protocol, first), summed(protocol, other)
    return of_same_devices(after, before, (first[1], other[1])) if same_devices else after.less(before)


def of(*windows: Counts) -> Windows:
    """Windows of N reports each, together."""
    return np.sum(windows, axis=0), (N,) * len(windows)


def standardized(example: Example, found: list[Estimate], truth: Floats) -> Floats:
    """Return the mean square of the errors over the mean of their variances, for each value that has errors."""
    squares = np.mean([(linear.values - truth) ** 2 for linear in found], axis=0)
    variance = np.mean([linear.variance for linear in found], axis=0)
    ratio: Floats = squares[variance > 0] / variance[variance > 0]
    return ratio


@pytest.mark.parametrize("name", SHARES)
def test_the_variance_over_windows_is_that_of_devices_that_keep_their_responses(name: str) -> None:
    example, protocol = KEPT[name], KEPT[name].protocol
    runs = simulated(example)
    together = [summed(protocol, of(*windows)) for windows in runs]
    apart = [protocol.decoder.linear(np.sum(windows, axis=0), WINDOWS * N) for windows in runs]
    changes = [difference(protocol, of(*windows[:2]), of(*windows[3:]), same_devices=True) for windows in runs]
    # The mean square of 300 errors is within .35 of 1 but once in ten thousand times; there are 9 values.
    assert standardized(example, together, example.truth) == pytest.approx(1, abs=0.35)
    assert standardized(example, changes, np.zeros_like(example.truth)) == pytest.approx(1, abs=0.35)
    assert standardized(example, apart, example.truth).mean() > 1.1


def test_devices_that_keep_nothing_are_different_in_each_window() -> None:
    protocol = examples()["rr"].protocol
    cells = np.array([30, 10, 10, 10, 10, 10, 10, 10])
    found = summed(protocol, (2 * cells, (100, 100)))
    assert found.n.tolist() == [200] * 8
    change = difference(protocol, (cells, (100,)), (cells, (100,)), same_devices=True)
    assert change.variance == pytest.approx(4 * found.variance)


@pytest.mark.parametrize("ns", [[5], [7, 7], [3, 9, 4], [1, 1_000, 1, 20]])
def test_reports_repeat_in_pairs_of_windows(ns: list[int]) -> None:
    assert repeats(ns) == pytest.approx(sum(min(pair) for pair in permutations(ns, 2)) / sum(ns))
