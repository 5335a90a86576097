"""The draws of a device: their number depends neither on what it holds, nor on whether its report is noise or truth.

Otherwise the time that a report takes would tell. ``benchmarks/timing.py`` measures the time itself.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.build import START
from tests.mechanisms.protocols import alternatives, examples
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.devices.ledger import MemoryLedger
from uldp.mechanisms.devices.randomness import SystemRandomness
from uldp.mechanisms.protocol.mechanism import WithMemory
from uldp.schemas.specs.kinds import Pairs, Sets, StringSets

EXAMPLES = examples()
KEPT = [name for name, each in EXAMPLES.items() if each.protocol.mechanism.memory]
OF_SETS = [
    name
    for name, each in EXAMPLES.items()
    if isinstance(next(iter(each.spec.variables.values())).kind, Sets | StringSets)
]

Size = int | tuple[int, ...]


class Scripted:
    """Randomness that gives one float and one place in every range, and keeps a list of what was drawn."""

    def __init__(self, drawn: float, place: int) -> None:
        self._drawn, self._place = drawn, place
        self.calls: list[tuple[str, Size]] = []

    def random(self, size: Size) -> npt.NDArray[np.float64]:
        self.calls.append(("random", size))
        return np.full(size, self._drawn)

    def integers(self, low: int, high: int, size: Size) -> npt.NDArray[np.int64]:
        self.calls.append((f"integers from {low} to {high}", size))
        return np.full(size, low + self._place % (high - low))


#: The least float gives noise, and the greatest one truth.
NOISE, TRUTH = 0.0, 1 - 2**-53


@pytest.mark.parametrize("name", EXAMPLES)
def test_noise_and_truth_take_the_same_draws(name: str) -> None:
    mechanism = EXAMPLES[name].protocol.mechanism
    for inputs in alternatives(mechanism):
        calls = []
        for drawn in (NOISE, TRUTH):
            for symbol in inputs[[0, len(inputs) // 2, -1]]:
                randomness = Scripted(drawn, 1)
                mechanism.perturb(np.array([symbol]), randomness)
                calls.append(randomness.calls)
        assert all(each == calls[0] for each in calls)


@pytest.mark.parametrize("name", EXAMPLES)
def test_noise_and_truth_read_the_same_bytes_of_the_system(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of bytes 0 all floats are 0, and of bytes 255 all are 1 - 2^-53. A range rejects words of an integer, and draws
    # them again, with a probability that depends on the range alone; here no range rejects the words of integers.
    mechanism = EXAMPLES[name].protocol.mechanism
    integers = SystemRandomness.integers
    lengths: list[int] = []

    def source(byte: bytes) -> Callable[[int], bytes]:
        def urandom(n: int) -> bytes:
            lengths.append(n)
            return byte * n

        return urandom

    def accepted(self: SystemRandomness, low: int, high: int, size: Size) -> npt.NDArray[np.int64]:
        with monkeypatch.context() as patch:
            patch.setattr(os, "urandom", source(b"\x05"))
            return integers(self, low, high, size)

    monkeypatch.setattr(SystemRandomness, "integers", accepted)
    for inputs in alternatives(mechanism):
        read = []
        for byte in (b"\x00", b"\xff"):
            lengths.clear()
            monkeypatch.setattr(os, "urandom", source(byte))
            mechanism.perturb(inputs[:1], SystemRandomness())
            read.append(list(lengths))
        assert read[0] == read[1]


def of_size(kind: object, size: int) -> Any:
    """A set of so many items, as a device is given it."""
    if isinstance(kind, StringSets):
        return {"o" * (number + 1) for number in range(size)}
    return dict.fromkeys(range(size), 3.0) if isinstance(kind, Pairs) else set(range(size))


@pytest.mark.parametrize("name", OF_SETS)
@pytest.mark.parametrize(("drawn", "place"), [(NOISE, 0), (TRUTH, 1), (TRUTH, -1)])
def test_sets_of_all_sizes_take_the_same_draws(name: str, drawn: float, place: int) -> None:
    spec, calls = EXAMPLES[name].spec, []
    for size in range(9):  # below, at and above what a device reports
        randomness = Scripted(drawn, place)
        Device(spec, {}, randomness, MemoryLedger()).report(of_size(spec.variables[""].kind, size), START)
        calls.append(randomness.calls)
    assert all(each == calls[0] for each in calls)


@pytest.mark.parametrize("name", KEPT)
def test_all_responses_take_the_same_draws_again(name: str) -> None:
    mechanism = EXAMPLES[name].protocol.mechanism
    assert isinstance(mechanism, WithMemory)
    symbols, calls = alternatives(mechanism)[0], []
    kept = mechanism.permanent(symbols[np.arange(40) % len(symbols)], np.random.default_rng(1))
    for response in kept:
        randomness = Scripted(NOISE, 1)
        mechanism.again(np.array([response]), randomness)
        calls.append(randomness.calls)
    assert all(each == calls[0] for each in calls)
