"""Numbers become points of a grid: without bias, by integers, and never with a word about the number."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from uldp.mechanisms.encodings.number_encoding import NumberEncoding
from uldp.mechanisms.protocol.encoding import Held
from uldp.schemas.arrays import Floats

GRIDS = st.integers(1, 2**16)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@dataclass
class Scripted:
    """Randomness that draws the integer at ``share`` of the range, and notes the range."""

    share: Fraction
    high: int = 0

    def random(self, size: int | tuple[int, ...]) -> Floats:
        raise AssertionError("rounding draws integers alone")

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> npt.NDArray[np.int64]:
        assert low == 0
        self.high = high
        return np.full(size, min(int(self.share * high), high - 1), dtype=np.int64)


def held(numbers: npt.ArrayLike) -> list[Held]:
    values = np.asarray(numbers)
    return [Held(values, np.full(len(values), -1))]


def chance_of_upper(encoding: NumberEncoding, number: float) -> tuple[int, Fraction]:
    """The lower point of a number, and the exact share of draws that give the next one."""
    draws = Scripted(Fraction(0))
    (lower,) = encoding.encode(held([number]), draws).tolist()
    # Draws at or above a threshold give the upper point; bisection finds the threshold.
    first, last = 0, draws.high
    while first < last:
        middle = (first + last) // 2
        (symbol,) = encoding.encode(held([number]), Scripted(Fraction(middle, draws.high))).tolist()
        first, last = (first, middle) if symbol > lower else (middle + 1, last)
    return lower, Fraction(draws.high - first, draws.high)


@given(NUMBERS, NUMBERS, GRIDS, st.floats(0, 1))
def test_rounding_has_no_bias(low: float, high: float, grid: int, share: float) -> None:
    assume(0 < high - low < math.inf)
    number = min(low + share * (high - low), high)
    lower, chance = chance_of_upper(NumberEncoding(low, high, grid), number)
    place = (Fraction(number) - Fraction(low)) / (Fraction(high) - Fraction(low))
    # 2^-51 for the parts of the range, 2^-52 for the subtractions and the quotient as floats.
    assert abs((lower + chance) / grid - place) <= Fraction(3, 2**52)


@given(st.integers(1, 2**16), st.fractions(0, 1))
def test_points_of_the_grid_stay_where_they_are(grid: int, draw: Fraction) -> None:
    points = np.unique(np.linspace(0, grid, 9).astype(np.int64))
    assert NumberEncoding(0, grid, grid).encode(held(points), Scripted(draw)).tolist() == points.tolist()


@given(NUMBERS, st.fractions(0, 1), st.sampled_from([1, 3, 2**16]))
def test_numbers_out_of_range_are_its_nearest_end(number: float, draw: Fraction, grid: int) -> None:
    (symbol,) = NumberEncoding(-2.5, 4, grid).encode(held([number]), Scripted(draw)).tolist()
    assert 0 <= symbol <= grid
    if number <= -2.5:
        assert symbol == 0
    if number >= 4:
        assert symbol == grid


def test_integers_are_numbers() -> None:
    assert NumberEncoding(0, 10, 10).encode(held([0, 7, 12]), np.random.default_rng(0)).tolist() == [0, 7, 10]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused_without_a_word_about_it(number: float) -> None:
    with pytest.raises(ValueError) as caught:
        NumberEncoding(0, 1, 4).encode(held([0.5, number]), np.random.default_rng(0))
    assert str(caught.value) == "a value is not a finite number"


@pytest.mark.parametrize(
    ("low", "high", "grid", "text"),
    [
        *((*ends, 4, "a range needs finite numbers, low below high") for ends in ((1, 1), (2, 1), (0, math.nan))),
        *((*ends, 4, "a range needs finite numbers") for ends in ((-math.inf, 0), (0, math.inf), (-1.7e308, 1.7e308))),
        *((0, 1, grid, r"a grid has 1 to 2\^16 steps") for grid in (-1, 0, 2**16 + 1)),
    ],
)
def test_what_is_no_range_or_grid_is_refused(low: float, high: float, grid: int, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        NumberEncoding(low, high, grid)
