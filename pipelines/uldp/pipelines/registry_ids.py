"""The file that says what the ids of a schema registry mean: a CSV table with the header ``id,schema``."""

from collections.abc import Mapping
from pathlib import Path

from uldp.schemas.codec.registry import MAX_REGISTRY_ID, check_registry_id
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.mistakes import plain, quote
from uldp.schemas.specs.tables import Table

_HEADER = ("id", "schema")
#: The most digits of an id.
_DIGITS = len(str(MAX_REGISTRY_ID))


def read_registry_ids(path: Path) -> Mapping[int, str]:
    """Read the schema of each id; ValueError, with file, line and remedy, if one is there twice or means none."""
    seen: set[int] = set()

    def entry(row: list[str]) -> tuple[int, str]:
        text, schema = row
        if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
            raise RequestError(f"id {quote(text)} must be a whole number, as the registry shows it")
        number = int(text)
        check_registry_id(number, schema)
        if number in seen:
            raise RequestError(f"id {number} occurs twice; remove one row")
        seen.add(number)
        return number, schema

    try:
        found = dict(Table.read(path, _HEADER).each(entry))
        if not found:
            raise RequestError("the file names no ids; write one a line, as 7,report")
    except ValueError as error:
        raise RequestError(f"{plain(str(path))}: {error}") from error
    return found
