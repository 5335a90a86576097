"""The mean of a number: its estimate, its interval, and a test that forged reports fail."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mechanisms.estimates import ends_of
from uldp.mechanisms.families.duchi.spec import MeanDecoder
from uldp.schemas.flags import Flag
from uldp.schemas.table import Table

LOW, HIGH = -3.0, 24.0
EPSILONS = [0.1, 1.0, 4.0, 50.0]


def share_of_ones(mean: float, epsilon: float) -> float:
    """Equation (64), for a mean in [LOW, HIGH]."""
    E = math.exp(epsilon)
    return 1 / (E + 1) + (E - 1) / (E + 1) * (mean - LOW) / (HIGH - LOW)


def mean_of(ones: int, n: int, epsilon: float = 1.0) -> Table:
    (table,) = MeanDecoder(LOW, HIGH, epsilon).tables(np.array([n - ones, ones]), n, "empirical")
    return table


@given(st.data(), st.integers(1, 2**40), st.sampled_from([0.1, 1.0, 4.0]))
def test_the_estimate_is_equation_65(data: st.DataObject, n: int, epsilon: float) -> None:
    ones, E = data.draw(st.integers(0, n)), math.exp(epsilon)
    wanted = LOW + (HIGH - LOW) * (ones / n * (E + 1) - 1) / (E - 1)
    assert mean_of(ones, n, epsilon).values == pytest.approx([wanted], rel=1e-10, abs=1e-10)


@given(st.data(), st.integers(1, 2**40), st.sampled_from(EPSILONS))
def test_the_interval_holds_the_estimate_and_goes_with_the_range(data: st.DataObject, n: int, epsilon: float) -> None:
    ones = data.draw(st.integers(0, n))
    table, mirrored = mean_of(ones, n, epsilon), mean_of(n - ones, n, epsilon)
    ((low,), (high,)), (_, (highest,)) = ends_of(table), ends_of(mirrored)
    assert low <= table.values[0] <= high
    # Zeros and ones are alike: a mirrored range has mirrored intervals.
    assert LOW + HIGH - highest == pytest.approx(low, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("mean", [LOW, 1.0, HIGH])
def test_the_variance_is_the_closed_form(mean: float, epsilon: float) -> None:
    n = 10**12
    ones = round(n * share_of_ones(mean, epsilon))
    E, half = math.exp(epsilon), (HIGH - LOW) / 2
    t = (mean - (LOW + HIGH) / 2) / half
    wanted = (((E + 1) / (E - 1)) ** 2 - t**2) * half**2 / n
    # What is left at the ends at epsilon 50 is 2e-22 of the range.
    assert mean_of(ones, n, epsilon).stderr[0] ** 2 == pytest.approx(wanted, rel=1e-4, abs=1e-25)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("ones", [0, 3])
def test_few_reports_are_never_certain(ones: int, epsilon: float) -> None:
    # All are alike: the plain binomial variance would be 0, yet the noise alone has f (1 - f).
    E = math.exp(epsilon)
    assert mean_of(ones, 3, epsilon).stderr[0] ** 2 == pytest.approx((HIGH - LOW) ** 2 / 3 * E / (E - 1) ** 2)


def test_a_check_shows_the_probabilities_and_the_error() -> None:
    moved = "by up to 0.0216 % of the range, and 1 % of them by up to 2.16 %"
    assert list(MeanDecoder(LOW, HIGH, 1.0).describe(10_000, "auto")) == [
        ("ones", "probability 0.268941 at -3, rising to 0.731059 at 24"),
        ("heaviest", f"one forged report of 10,000 moves the mean {moved}"),
        ("errors", "of the mean at n = 10,000, uniform values: 0.292"),
    ]


@pytest.mark.parametrize("bit", [0, 1])
def test_forged_reports_of_one_bit_are_improbable(bit: int) -> None:
    cells = np.array([100, 100])
    cells[bit] = 900
    decoder = MeanDecoder(LOW, HIGH, 1.0)
    assert decoder.p_values(cells, 1000)[Flag.IMPROBABLE_COUNTS] < 1e-30
    cells = np.array([270, 270])  # 1/(E+1) of 1000 is 269
    cells[bit] = 730
    assert decoder.p_values(cells, 1000)[Flag.IMPROBABLE_COUNTS] > 0.5


def test_a_mean_has_one_estimator_of_two_names() -> None:
    with pytest.raises(ValueError, match="no estimator 'ems'; choose one of auto, empirical"):
        MeanDecoder(LOW, HIGH, 1.0).tables(np.array([1, 2]), 3, "ems")
