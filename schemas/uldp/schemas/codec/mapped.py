"""Messages of archivers: records of a known layout, read one by one, of which only what a message has is read."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from uldp.schemas.codec.blocks import ContainerError, check_end
from uldp.schemas.codec.layouts import Layout, Role, Type
from uldp.schemas.codec.stored import read_bytes, read_long, read_map, read_text
from uldp.schemas.records import NO_ATTRIBUTES, Message, known_attributes
from uldp.schemas.specs.durations import milliseconds_of

#: As Event Hubs writes a time: 1/2/2026 3:04:05 PM, in newer versions of .NET with a narrow space before the last part.
_AMERICAN = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4}) (\d{1,2}):(\d{2}):(\d{2})[ \u202f]([AP])M")
_DOUBLE = 8
#: The publish time of a message that has none.
NO_TIME = -1


def mapped_messages(
    layout: Layout, records: int, block: bytes, file: str, first: int, published: int
) -> Iterator[Message]:
    """Yield the messages of a block, behind ``first`` others of its file; ``published`` is the time of one without.

    They have the known attributes alone. ContainerError during iteration, if the block is not so many records.
    """
    at = 0
    for number in range(first, first + records):
        data, time, attributes = b"", published, NO_ATTRIBUTES
        try:
            for role, kind in layout.fields:
                value, at = _read(block, at, kind)
                if role is Role.DATA:
                    data = value or b""
                elif role is Role.TIME:
                    time = published if value is None else value // layout.units
                elif role is Role.TIME_TEXT:
                    time = _time_of(value)
                elif role is Role.ATTRIBUTES and value:
                    attributes = known_attributes(value)
        except ContainerError:
            raise
        except (IndexError, ValueError) as error:
            raise ContainerError(f"a record is no message: {error}") from error
        yield Message(data, time, attributes, f"{file}:{number}")
    check_end(at, block)


def _time_of(text: str) -> int:
    try:
        return parse_time(text)
    except ValueError:
        raise ContainerError(
            f"the time {text[:40]!r} of a message is neither ISO 8601 nor as 1/31/2026 9:00:01 AM",
            "write the files again with such times",
        ) from None


@lru_cache(maxsize=1024)
def parse_time(text: str) -> int:
    """Read a time in UTC, as Event Hubs or as ISO 8601 writes it, in milliseconds since 1970. ValueError if it is none.

    >>> parse_time("1/1/2026 9:00:01 AM") == parse_time("2026-01-01T09:00:01.0000000Z") == 1_767_258_001_000
    True
    """
    if match := _AMERICAN.fullmatch(text):
        month, day, year, hour, minute, second = map(int, match.groups()[:6])
        if not 1 <= hour <= 12:
            raise ValueError(f"an hour of half a day cannot be {hour}")
        time = datetime(year, month, day, hour % 12 + 12 * (match[7] == "P"), minute, second, tzinfo=UTC)
    else:
        time = datetime.fromisoformat(text)
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return milliseconds_of(time)


def _read(block: bytes, at: int, kind: Type) -> tuple[Any, int]:
    """Read a value of these types; return it and the offset behind; IndexError or ValueError if there is none."""
    if kind == "bytes":
        start, end = read_bytes(block, at)
        return block[start:end], end
    if kind == "string":
        return read_text(block, at)
    if kind == "long":
        return read_long(block, at)
    if kind == "null":
        return None, at
    if kind == "double":
        if at + _DOUBLE > len(block):
            raise ValueError("a number cannot end behind the block")
        return None, at + _DOUBLE  # no part of a message is one
    name, *parts = kind
    if name == "map":
        found, at = read_map(block, at, lambda block, at: _read(block, at, parts[0]))
        return {name: str(value) for name, value in found.items() if isinstance(value, str | int)}, at
    branch, at = read_long(block, at)
    if not 0 <= branch < len(parts):
        raise ValueError(f"a union has no branch {branch}")
    return _read(block, at, parts[branch])
