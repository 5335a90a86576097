"""The rows about mechanisms in the tables of pages: the folder of each family has them, in ``tables.toml``.

``python -m tests.docs.tables`` writes them to the pages, below the headings of each table that two comments enclose.
Rows are in the order in which ``uldp.schemas.specs.families`` has the mechanisms that they name first. Rows that differ
in their first cell alone become one.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

from uldp.schemas.specs.families import mechanism_names

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "docs" / name
    for name in (
        "spec/values.md",
        "spec/strings.md",
        "spec/sets.md",
        "client/obfuscate.md",
        "client/kept.md",
        "mechanisms.md",
    )
]
FILES = sorted((ROOT / "mechanisms" / "uldp" / "mechanisms").rglob("tables.toml"))
COMMAND = "python -m tests.docs.tables"
#: A table between its comments: its name, its two lines of headings, and its rows.
TABLE = re.compile(r"(?<=<!-- rows of )(\w+)( -->\n\n\|.*\n\|.*\n)((?:\|.*\n)*)(?=\n<!-- end of \1 -->)")

Row = tuple[str, ...]
_PLACES = dict(zip(mechanism_names(), count()))


def rows_of_files() -> Mapping[str, list[Row]]:
    """Return the rows of each table, by its name."""
    found: dict[str, dict[Row, list[str]]] = {}
    for row, table in sorted(_rows(), key=lambda pair: _place(pair[0])):
        found.setdefault(table, {}).setdefault(row[1:], []).append(row[0])
    return {table: [(", ".join(first), *rest) for rest, first in rows.items()] for table, rows in found.items()}


def _rows() -> Iterator[tuple[Row, str]]:
    for path in FILES:
        for table, rows in tomllib.loads(path.read_text(encoding="utf-8")).items():
            yield from ((tuple(row), table) for row in rows)


def _place(row: Row) -> int:
    """Return the place of the first mechanism that a row names, in its first two cells."""
    words = (word for code in re.findall("`([^`]+)`", " ".join(row[:2])) for word in code.split())
    return next((_PLACES[word] for word in words if word in _PLACES), len(_PLACES))


def written(page: str) -> str:
    """Return the text of a page with the rows of the files in its tables."""
    rows = rows_of_files()

    def table(found: re.Match[str]) -> str:
        name, headings = found[1], found[2]
        return name + headings + "".join(f"| {' | '.join(row)} |\n".replace("|  |", "| |") for row in rows[name])

    return TABLE.sub(table, page)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
