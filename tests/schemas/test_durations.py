"""Durations as specs write them."""

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uldp.schemas.specs.durations import format_duration, milliseconds, parse_duration


@given(st.integers(0, 999_999_999), st.sampled_from(["ms", "s", "m", "h", "d"]))
def test_durations_round_trip(number: int, unit: str) -> None:
    duration = parse_duration(f"{number}{unit}")
    assert parse_duration(format_duration(duration)) == duration
    assert milliseconds(duration) == number * {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}[unit]


@given(st.integers(1, 10**9), st.sampled_from(["ms", "s", "m", "h", "d"]))
def test_a_duration_is_written_in_the_largest_unit_that_divides_it(number: int, unit: str) -> None:
    match = re.fullmatch(r"(\d+)(ms|s|m|h|d)", format_duration(timedelta(milliseconds=number)))
    assert match is not None
    larger = {"ms": 1000, "s": 60, "m": 60, "h": 24}.get(match[2])
    assert larger is None or int(match[1]) % larger


@pytest.mark.parametrize(
    "text", ["", "1", "h", "1w", "1H", "1e3s", "1h30m", " 1h", "1h ", "+1h", "1000000000s", 60, None]
)
def test_anything_else_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match=r"^write a duration as a whole number and a unit"):
        parse_duration(text)
