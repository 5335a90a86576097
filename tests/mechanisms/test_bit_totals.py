"""Totals of bits that no honest report has, and how many of them are too many, against exact references."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.mechanisms.plausibility import mask
from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding, sue_theta
from uldp.mechanisms.inference.plausibility import excess_p_value
from uldp.schemas.arrays import Floats


def bounds(mechanism: UnaryEncoding, tail: float) -> tuple[int, int]:
    return mechanism.bit_totals.within(tail)


def totals_by_convolution(mechanism: UnaryEncoding) -> Floats:
    """The same, one bit after another, for one symbol of each kind."""
    channel = mechanism.channel
    rows = []
    for z in np.unique(mechanism.sensitive, return_index=True)[1]:
        row = np.ones(1)
        for bit in np.where(np.arange(mechanism.size) == z, channel.p, channel.q):
            row = np.convolve(row, [1 - bit, bit])
        rows.append(row)
    return np.stack(rows)


def assert_tightest(bounds: tuple[int, int], totals: Floats, tail: float) -> None:
    """Hold the bounds against Pr[z, t], shape (symbols, totals)."""

    def worst_below(low: int) -> float:
        return float(totals[:, : max(low, 0)].sum(axis=1).max())

    def worst_above(high: int) -> float:
        return float(totals[:, max(high + 1, 0) :].sum(axis=1).max())

    low, high = bounds
    assert worst_below(low) <= tail / 2 < worst_below(low + 1)
    assert worst_above(high) <= tail / 2 < worst_above(high - 1)


@pytest.mark.parametrize("v", [200, 400])
@pytest.mark.parametrize("tail", [1e-3, 1e-6, 1e-12])
def test_bounds_of_totals_of_many_bits(v: int, tail: float) -> None:
    mechanism = UnaryEncoding(mask(v, 400), 2.0, sue_theta(2.0))
    assert_tightest(bounds(mechanism, tail), totals_by_convolution(mechanism), tail)


@given(n=st.integers(0, 10**7), data=st.data(), tail=st.floats(1e-9, 0.5))
def test_excess_is_the_upper_tail_of_the_binomial(n: int, data: st.DataObject, tail: float) -> None:
    observed = data.draw(st.integers(0, min(n, 3 * int(n * tail) + 10)))
    expected = stats.binom.sf(observed - 1, n, tail)
    assert excess_p_value(observed, n, tail) == pytest.approx(expected, rel=1e-9, abs=1e-300)
