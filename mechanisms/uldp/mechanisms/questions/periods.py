"""Periods of the calendar of a time zone: local days of 23, 24 or 25 hours, ISO weeks, and months.

Windows are in UTC. A period has those that lie in it; a window that lies in two periods has no place.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal, get_args
from zoneinfo import ZoneInfo

from uldp.schemas.errors import RequestError
from uldp.schemas.specs.durations import milliseconds_of, moment_at
from uldp.schemas.specs.mistakes import quote

#: The lengths of periods.
Every = Literal["1d", "1w", "1mo"]
EVERY: tuple[Every, ...] = get_args(Every)

_NAMES = {"1d": "day", "1w": "ISO week", "1mo": "month"}


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """A stretch of time."""

    start: int  # its first millisecond since 1970-01-01 UTC
    end: int  # the millisecond behind its last one
    name: str  # how its calendar calls it, such as ``2026-03-29`` or ``2026-W13``; of several, the first and the last


def zone_of(name: str) -> tzinfo:
    """Return a time zone by its IANA name; RequestError if this machine does not have it."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError) as error:  # a name may be a path, a folder, or unknown
        raise RequestError(
            f"no time zone {quote(name)}; write one as Europe/Berlin, or pip install tzdata if this machine has none"
        ) from error


def period_of(start: int, end: int, every: Every, zone: tzinfo) -> Period:
    """Return the period that a window lies in. RequestError if the window lies in two periods.

    >>> period_of(1774738800000, 1774742400000, "1d", zone_of("Europe/Berlin"))
    Period(start=1774738800000, end=1774821600000, name='2026-03-29')
    """
    local = moment_at(start).astimezone(zone)
    midnight = datetime(local.year, local.month, local.day, tzinfo=zone)
    match every:
        case "1d":
            first, after, name = midnight, _days_later(midnight, 1), f"{midnight:%Y-%m-%d}"
        case "1w":
            year, week, day = midnight.isocalendar()
            first = _days_later(midnight, 1 - day)
            after, name = _days_later(first, 7), f"{year}-W{week:02}"
        case "1mo":
            first = midnight.replace(day=1)
            after, name = _days_later(first, 32).replace(day=1), f"{first:%Y-%m}"
    period = Period(milliseconds_of(first), milliseconds_of(after), name)
    if end > period.end:
        raise RequestError(
            f"a window from {_text(start)} to {_text(end)} UTC lies in two periods: the {_NAMES[every]} {name} of"
            f" {zone} ends at {_text(period.end)} UTC; take longer periods, another zone, or shorter windows"
        )
    return period


def _days_later(midnight: datetime, days: int) -> datetime:
    """Return another midnight on the same wall clock, however long the days between are."""
    return (midnight.replace(tzinfo=None) + timedelta(days=days)).replace(tzinfo=midnight.tzinfo)


def _text(time: int) -> str:
    return f"{moment_at(time):%Y-%m-%d %H:%M}"
