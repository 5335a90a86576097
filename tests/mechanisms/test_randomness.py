"""Uniform draws from the system and from seeds."""

import os

import numpy as np
import pytest
from scipy import stats

from uldp.mechanisms.devices.randomness import SystemRandomness


@pytest.fixture
def _seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's source has no seed; a seeded one in its place makes statistical tests repeatable."""
    monkeypatch.setattr(os, "urandom", np.random.default_rng(2019).bytes)


def script(monkeypatch: pytest.MonkeyPatch, *words: int) -> None:
    """Let the system's source return these 64-bit words, in native byte order."""
    stream = iter(words)
    monkeypatch.setattr(os, "urandom", lambda n: np.array([next(stream) for _ in range(n // 8)], np.uint64).tobytes())


@pytest.mark.usefixtures("_seeded")
def test_random_is_uniform() -> None:
    draws = SystemRandomness().random(200_000)
    assert stats.kstest(draws, "uniform").pvalue > 1e-4
    # The lowest of the 53 bits is as fair as the others: z < 5.
    lowest = (draws * 2**53).astype(np.int64) & 1
    assert abs(lowest.mean() - 0.5) < 5 * 0.5 / np.sqrt(len(draws))


def test_random_stays_below_1(monkeypatch: pytest.MonkeyPatch) -> None:
    script(monkeypatch, 0, 2**64 - 1, 1 << 11)
    assert SystemRandomness().random(3).tolist() == [0.0, 1 - 2**-53, 2**-53]


@pytest.mark.usefixtures("_seeded")
@pytest.mark.parametrize(("low", "high"), [(0, 2), (0, 17), (-5, 620)])
def test_integers_are_uniform(low: int, high: int) -> None:
    draws = SystemRandomness().integers(low, high, 200_000)
    assert draws.dtype == np.int64
    counts = np.bincount(draws - low, minlength=high - low)
    assert len(counts) == high - low
    assert stats.chisquare(counts).pvalue > 1e-4


def test_integers_draw_again_for_words_behind_the_last_whole_multiple(monkeypatch: pytest.MonkeyPatch) -> None:
    # 2^64 = 1 modulo 3, so the one word to reject is 2^64 - 1.
    script(monkeypatch, 2**64 - 1, 2**64 - 2, 2**64 - 1, 4)
    assert SystemRandomness().integers(10, 13, 2).tolist() == [11, 12]


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the range \[3, 3\) has no integers"):
        SystemRandomness().integers(3, 3, 1)
