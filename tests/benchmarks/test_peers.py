"""The other libraries that are compared with."""

import math
import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType

import numpy as np
import pytest

from benchmarks import peers
from benchmarks.peers import BITS, SYMBOLS, as_vectors, ours, protocols
from uldp.schemas.arrays import Floats

LIBRARIES = ("pure_ldp", "multi_freq_ldpy")


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] in LIBRARIES:
            monkeypatch.delitem(sys.modules, name)
    for name in LIBRARIES:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("absent")
def test_without_the_libraries_the_rows_say_so() -> None:
    rows = list(peers.rows(quick=True))
    assert [row.n for row in rows] == [SYMBOLS // 10] * 3 + [BITS // 10] * 6
    for row in rows:
        assert (row.seconds is None, row.remark == peers.INSTALL) == (("uldp-stream" not in row.label,) * 2)


def grr(reports: list[int], size: int, epsilon: float) -> Floats:
    """Estimate as multi-freq-ldpy does: without bias, then nothing below zero and a sum of one."""
    p, q = math.exp(epsilon) / (math.exp(epsilon) + size - 1), 1 / (math.exp(epsilon) + size - 1)
    unbiased: Floats = (np.bincount(reports, minlength=size) / len(reports) - q) / (p - q)
    positive: Floats = np.clip(unbiased, 0, None)
    positive /= positive.sum()
    return positive


def install(monkeypatch: pytest.MonkeyPatch, aggregator: Callable[[list[int], int, float], Floats]) -> None:
    names = "multi_freq_ldpy", "multi_freq_ldpy.pure_frequency_oracles", "multi_freq_ldpy.pure_frequency_oracles.GRR"
    for name in names:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules[names[-1]], "GRR_Aggregator_MI", aggregator, raising=False)


@pytest.mark.usefixtures("absent")
def test_a_peer_that_estimates_the_same_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, grr)
    monkeypatch.setattr(
        peers, "timed", lambda server: 0.5 if isinstance(server, partial) and grr is server.func else 0.1
    )
    monkeypatch.setattr(peers, "protocols", lambda: {"GRR": protocols()["GRR"]})
    mine, theirs, missing = peers.rows(quick=True)
    assert (mine.label, theirs.label, missing.label) == ("GRR, uldp-stream", "GRR, multi-freq-ldpy", "GRR, pure-ldp")
    assert (mine.seconds, theirs.seconds, missing.seconds) == (0.1, 0.5, None)
    assert theirs.remark == "uldp-stream: 5 times as fast"


@pytest.mark.usefixtures("absent")
def test_a_peer_that_estimates_something_else_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, lambda reports, size, epsilon: np.full(size, 1 / size))
    with pytest.raises(AssertionError, match="multi-freq-ldpy estimates GRR differently"):
        list(peers.rows(quick=True))


@pytest.mark.parametrize("protocol", ["GRR", "OUE", "SUE"])
def test_ours_is_an_estimate_of_the_distribution(protocol: str) -> None:
    mechanism = protocols()[protocol]
    rng = np.random.default_rng(4)
    n = 20_000
    estimate = ours(mechanism, mechanism.perturb(np.zeros(n, dtype=np.intp), rng))
    deviation = np.sqrt(mechanism.channel.variance(np.eye(mechanism.size)[0], n))
    assert np.abs(estimate - np.eye(mechanism.size)[0]).max() < (5 * deviation).max()
    assert estimate.argmax() == 0


def test_vectors_are_the_bits_of_the_reports() -> None:
    packed = np.zeros((2, 79), dtype=np.uint8)
    packed[1, 0] = 0b0100_0000
    zeros, one = as_vectors(packed, np.float64)
    assert (zeros.dtype, zeros.shape, zeros.sum()) == (np.float64, (625,), 0)
    assert np.flatnonzero(one).tolist() == [1]
    assert as_vectors(np.array([3, 1], dtype=np.uint32), np.int64) == [3, 1]


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_libraries_estimate_the_same(library: str) -> None:
    pytest.importorskip(library)
    rows = [row for row in peers.rows(quick=True) if row.label.endswith(library.replace("_", "-"))]
    assert len(rows) == 3
    assert all(row.seconds is not None for row in rows)
