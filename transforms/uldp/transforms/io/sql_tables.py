"""The table of rows of estimates in a database, and the view of the newest panes, as statements of SQL."""

from collections.abc import Iterable, Mapping

from uldp.schemas.errors import EndpointError
from uldp.schemas.rows import COLUMNS, KEY, STORED_COLUMNS, WINDOW_KEY, Kind

#: The table of all panes.
TABLE = "estimate_panes"
#: The view of the newest pane of each window. It has the columns of ``uldp export``.
VIEW = "estimates"


def create_table(types: Mapping[Kind, str]) -> str:
    """Return the statement that creates the table, unless it is there, by the type of each kind of column."""
    columns = [f"{name} {types[kind]}{' NOT NULL' * (name in KEY)}" for name, kind in STORED_COLUMNS.items()]
    return f"CREATE TABLE IF NOT EXISTS {TABLE} ({', '.join(columns)}, PRIMARY KEY ({', '.join(KEY)}))"


def create_view() -> str:
    """Return the statement that creates the view."""
    names, window = ", ".join(COLUMNS), ", ".join(WINDOW_KEY)
    newest = f"SELECT *, max(age) OVER (PARTITION BY {window}) AS newest FROM {TABLE}"  # noqa: S608 (all are constants)
    return f"CREATE VIEW {VIEW} AS SELECT {names} FROM ({newest}) AS panes WHERE age = newest"  # noqa: S608


def newest_panes(milliseconds: str, table: str = TABLE) -> str:
    """Return the query for ``KeptPane.of_row`` of newest panes; ``{}`` of ``milliseconds`` is a column of time."""
    times = ("window_start", "window_end")
    names = [milliseconds.format(name) if name in times else name for name in WINDOW_KEY]
    return f"SELECT {', '.join(names)}, max(age) FROM {table} GROUP BY {', '.join(WINDOW_KEY)}"  # noqa: S608


def check_columns(name: str, found: Iterable[str], remedy: str) -> None:
    """Check that a table has the columns of rows; EndpointError if not."""
    there = set(found)
    if missing := [column for column in STORED_COLUMNS if column not in there]:
        raise EndpointError(f"{name}: the table {TABLE} has no column {missing[0]}; {remedy}")
