"""Durations in the form of specs: a whole number and a unit."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_FORM = r"(\d{1,9})(ms|s|m|h|d)"
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_duration(text: object) -> timedelta:
    """Read a duration such as ``90s`` or ``1h``.

    Raises:
        ValueError: if the text is not a whole number and one of ms, s, m, h, d.
    """
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
