"""The benchmark of sums and differences, and what it must show."""

import pytest

from benchmarks.questions import MECHANISMS, NAMES, SIZES, measure


def test_sums_and_differences_cover() -> None:
    """200 windows: 10 are expected to miss, and more than 23 with a probability of 1e-4."""
    covered = dict(zip(NAMES, measure("urr with a tag", 150, 200), strict=True))
    assert covered.keys() == {"sum of 3", "sum of 10", "difference", "without noise", "difference of sums"}
    assert min(covered.values()) >= 1 - 23 / 200


@pytest.mark.nightly
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", MECHANISMS)
def test_intervals_cover_as_often_as_they_say(name: str, n: int) -> None:
    """Of single values, some are rare, and few counts of them leave few intervals to choose from."""
    of_three, of_ten, of_values, _, of_sums = measure(name, n, 2000)
    assert all(0.93 <= covered <= 0.97 for covered in (of_three, of_ten, of_sums))
    assert 0.93 <= of_values <= (0.985 if n < 1000 else 0.97)
