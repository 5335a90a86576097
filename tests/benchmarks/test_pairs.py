"""Shares and means of keys with numbers: measured as claimed, and no worse than by PCKV."""

import numpy as np
import pytest

from benchmarks.pairs import measure, pckv_variance


def test_pckv_samples_one_of_the_padded_keys() -> None:
    # At a share of 1 and l = 1 a report by UE supports the key as often as its bit of the truth is kept: 1/2.
    e = np.exp(4.0)
    b = 2 / (e + 3)
    by_grr = (e + 1) / (e + 21) * (1 - (e + 1) / (e + 21)) * ((e + 21) / (e - 1)) ** 2
    assert pckv_variance(10, 1, 4.0, 1.0) == pytest.approx(min(by_grr, 0.25 / (0.5 - b) ** 2))


def test_a_window_is_measured() -> None:
    found = measure(12, 2, 2.0, 0.2, 300, np.random.default_rng(1))
    assert found.variance == pytest.approx(found.closed, rel=5 * np.sqrt(2 / 300))
    assert found.coverage > 0.9


@pytest.mark.nightly
@pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
def test_shares_and_means_are_as_good_as_claimed(share: float) -> None:
    found = measure(20, 3, 2.0, share, 8_000, np.random.default_rng(2))
    assert found.variance == pytest.approx(found.closed, rel=0.05)
    assert 0.94 <= found.coverage <= 0.96
    assert found.closed < pckv_variance(20, 3, 2.0, share)
