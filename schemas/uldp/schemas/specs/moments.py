"""Moments in the form of specs: ISO 8601, in UTC unless it says otherwise."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

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
