"""Durations and moments in the form of specs: a whole number and a unit; ISO 8601, in UTC unless it says otherwise."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_FORM = r"(\d{1,9})(ms|s|m|h|d)"
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_duration(text: object) -> timedelta:
    """Read a duration such as ``90s``; ValueError if it is not a whole number and one of ms, s, m, h, d."""
    if isinstance(text, timedelta):
        return text
    match = re.fullmatch(_FORM, text) if isinstance(text, str) else None
    if match is None:
        raise ValueError("write a duration as a whole number and a unit: 30s, 10m, 1h, 1d")
    return timedelta(milliseconds=int(match[1]) * _UNITS[match[2]])


def format_duration(duration: timedelta) -> str:
    """Write a duration with the largest unit that divides it; the inverse of ``parse_duration``.

    >>> format_duration(timedelta(minutes=90))
    '90m'
    """
    total = milliseconds(duration)
    unit = next(unit for unit in reversed(_UNITS) if total % _UNITS[unit] == 0)
    return f"{total // _UNITS[unit]}{unit}"


def milliseconds(duration: timedelta) -> int:
    """Return a duration in whole milliseconds."""
    return duration // timedelta(milliseconds=1)


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": f"^{_FORM}$"}),
]


_EPOCH = datetime.fromtimestamp(0, UTC)


def parse_moment(text: object) -> datetime:
    """Read a moment such as ``2026-03-01T00:00Z``.

    YAML has read some forms of it already. ValueError if it is no time of ISO 8601, is before 1970, or is no whole
    millisecond.
    """
    try:
        moment = text if isinstance(text, datetime) else datetime.fromisoformat(text if isinstance(text, str) else "")
    except ValueError:
        raise ValueError("write a time as 2026-03-01T00:00Z") from None
    moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment < _EPOCH or moment.microsecond % 1000:
        raise ValueError("write a time from 1970 on, in whole milliseconds")
    return moment


def format_moment(moment: datetime) -> str:
    """Write a moment; the inverse of ``parse_moment``.

    >>> format_moment(parse_moment("2026-03-01T01:00+01:00"))
    '2026-03-01T00:00:00Z'
    """
    precision = "milliseconds" if moment.microsecond else "seconds"
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


def moment_at(milliseconds: int) -> datetime:
    """Return the moment that is so many milliseconds after 1970 began."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


def milliseconds_of(moment: datetime) -> int:
    """Return a moment in milliseconds since 1970."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


Moment = Annotated[
    datetime,
    BeforeValidator(parse_moment),
    PlainSerializer(format_moment, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
