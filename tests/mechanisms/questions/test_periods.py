"""Days, weeks and months of a time zone."""

import pytest

from uldp.mechanisms.questions.periods import Every, Period, period_of, zone_of
from uldp.schemas.errors import RequestError
from uldp.schemas.records import iso

HOUR = 3_600_000
#: 2026-03-28T23:00Z, when the day begins in Berlin on which its clocks go forward; and that on which they go back.
SHORT, LONG = 1_774_738_800_000, 1_792_879_200_000


def hours(period: Period) -> float:
    return (period.end - period.start) / HOUR


@pytest.mark.parametrize(
    ("start", "every", "name", "length"),
    [
        (SHORT, "1d", "2026-03-29", 23),
        (LONG, "1d", "2026-10-25", 25),
        (SHORT + 23 * HOUR, "1d", "2026-03-30", 24),
        (SHORT, "1w", "2026-W13", 7 * 24 - 1),
        (SHORT, "1mo", "2026-03", 31 * 24 - 1),
        (LONG, "1mo", "2026-10", 31 * 24 + 1),
    ],
)
def test_a_period_is_as_long_as_the_clocks_of_its_zone_say(start: int, every: Every, name: str, length: int) -> None:
    period = period_of(start, start + HOUR, every, zone_of("Europe/Berlin"))
    assert (period.name, hours(period)) == (name, length)
    assert period.start <= start < period.end


def test_a_week_begins_on_monday_and_the_year_of_a_week_is_that_of_its_thursday() -> None:
    new_year = 1_767_225_600_000
    assert iso(new_year) == "2026-01-01T00:00:00Z"
    week = period_of(new_year, new_year + HOUR, "1w", zone_of("UTC"))
    assert (iso(week.start), week.name) == ("2025-12-29T00:00:00Z", "2026-W01")
    assert period_of(week.start, week.start + HOUR, "1w", zone_of("UTC")) == week


def test_periods_follow_each_other_without_a_gap() -> None:
    zone, at = zone_of("America/New_York"), SHORT
    for _ in range(400):
        period = period_of(at, at + HOUR, "1d", zone)
        assert period.start == at or at == SHORT
        at = period.end


def test_a_window_that_lies_in_two_periods_is_refused() -> None:
    with pytest.raises(RequestError, match=r"2026-03-28 00:00 to 2026-03-29 00:00 UTC lies in two periods: the day"):
        period_of(SHORT - 23 * HOUR, SHORT + HOUR, "1d", zone_of("Europe/Berlin"))


@pytest.mark.parametrize("name", ["Europe/Berlyn", "", "../etc/passwd", "/etc/localtime", "Europe", "a\0b"])
def test_what_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(RequestError, match="no time zone"):
        zone_of(name)
