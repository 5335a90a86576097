"""Rows of estimates in a file of SQLite."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from uldp.schemas import CollectionSpec, Estimate
from uldp.schemas.rows import KEY, STORED_COLUMNS, rows
from uldp.transforms import RowSink

CREATE = f"CREATE TABLE IF NOT EXISTS panes ({', '.join(STORED_COLUMNS)}, PRIMARY KEY ({', '.join(KEY)}))"
INSERT = f"INSERT OR REPLACE INTO panes VALUES ({', '.join('?' * len(STORED_COLUMNS))})"


@dataclass(frozen=True)
class SQLiteSink(RowSink):
    """A file with the table ``panes``."""

    path: str
    only_here = True

    def __str__(self) -> str:
        return f"sqlite:{self.path}"

    def check_estimates(self) -> None:
        """Create the table unless it is there."""
        try:
            with closing(sqlite3.connect(self.path)) as connection:
                connection.execute(CREATE)
        except sqlite3.Error as error:
            raise ValueError(f"{self}: {error}; name another file") from error

    def write(self, estimates: Sequence[tuple[Estimate, CollectionSpec]]) -> None:
        """Write all rows in one transaction."""
        with closing(sqlite3.connect(self.path, timeout=60)) as connection, connection:
            for estimate, spec in estimates:
                connection.executemany(INSERT, ([*map(plain, row.values())] for row in rows(estimate, spec)))


def plain(value: object) -> object:
    """Write a time as text, because SQLite has none."""
    return value.isoformat() if isinstance(value, datetime) else value


def parse(uri: str, config: Path | None = None) -> SQLiteSink:
    """Read ``sqlite:FILE``."""
    return SQLiteSink(str(Path(uri.partition(":")[2]).absolute()))
