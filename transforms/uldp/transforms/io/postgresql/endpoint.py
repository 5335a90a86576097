"""A database of PostgreSQL as an endpoint, which keeps the rows of estimates."""

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from uldp.schemas.errors import EndpointError
from uldp.schemas.extras import needed
from uldp.schemas.rows import KEY, STORED_COLUMNS, Kind, rows
from uldp.transforms.internals import with_exponential_backoff
from uldp.transforms.io.row_sink import (
    TABLE,
    VIEW,
    KeptPane,
    Made,
    RowSink,
    check_columns,
    create_table,
    create_view,
    newest_panes,
)

_FORM = "postgresql://USER@HOST/DATABASE"
_TYPES = {
    Kind.TEXT: 'text COLLATE "C"',
    Kind.COUNT: "bigint",
    Kind.NUMBER: "double precision",
    Kind.TIME: "timestamptz",
    Kind.TRUTH: "boolean",
}
#: Seconds until a server that does not answer is given up.
ANSWER_SECONDS = 9

#: How long a worker tries to connect, with pauses that grow to some seconds, to a server that is restarted.
WAIT_SECONDS = 60.0

_PANES = newest_panes("(extract(epoch FROM {}) * 1000)::bigint")
#: Its log names each attempt, with a traceback.
_tried_again = partial(
    with_exponential_backoff,
    num_retries=1000,
    initial_delay_secs=0.5,
    max_delay_secs=5.0,
    stop_after_secs=WAIT_SECONDS,
    logger=logging.getLogger(__name__).debug,
)
#: Settings of a URL that hold a secret.
_SECRET = re.compile("password|secret")
_NAMES = ", ".join(STORED_COLUMNS)
_STAGE = f"CREATE TEMPORARY TABLE batch (LIKE {TABLE}) ON COMMIT DROP"
_COPY = f"COPY batch ({_NAMES}) FROM STDIN"
_VALUES = ", ".join(f"{name} = excluded.{name}" for name in STORED_COLUMNS if name not in KEY)
_UPSERT = (
    f"INSERT INTO {TABLE} ({_NAMES}) SELECT {_NAMES} FROM batch"  # noqa: S608 (all names are constants)
    f" ON CONFLICT ({', '.join(KEY)}) DO UPDATE SET {_VALUES}"
)


def parse(uri: str, config: Path | None = None) -> "PostgreSQLEndpoint":
    """Read ``postgresql://USER@HOST/DATABASE``, without a config; EndpointError, without a password, if it is none."""
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise EndpointError(f"postgresql: not a URL; write {_FORM}") from None
    if not uri.startswith("postgresql://"):
        raise EndpointError(f"postgresql: not a URL; write {_FORM}")
    user = f"{parts.username}@" if parts.username else ""
    shown = f"postgresql://{user}{host}{f':{port}' if port else ''}{parts.path}"
    return PostgreSQLEndpoint(shown, uri)


@dataclass(frozen=True)
class PostgreSQLEndpoint(RowSink):
    """A database."""

    shown: str  # the URL without password and settings
    #: The whole URL. The client library takes what it does not say, as the password, from the environment.
    url: str = field(repr=False)

    def __str__(self) -> str:
        return self.shown

    @property
    def recorded(self) -> str:
        """The URL without passwords; its settings may be needed to reach the server."""
        every = urlsplit(self.url).query.split("&")
        settings = [each for each in every if not _SECRET.search(unquote(each.partition("=")[0]))]
        return f"{self.shown}{'?' * any(settings)}{'&'.join(settings)}"

    def check_estimates(self) -> None:
        """Connect, create table and view, and write no rows as a worker writes some; EndpointError if that fails."""
        with self._connected() as connection:
            if not self._is_there(connection, TABLE):
                connection.execute(create_table(_TYPES))
            asked = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0"
            found = connection.execute(asked, [TABLE]).fetchall()
            check_columns(
                str(self), (name for (name,) in found), "name another database, or drop it if nothing needs it"
            )
            if not self._is_there(connection, VIEW):
                connection.execute(create_view())
            for right in ("INSERT", "UPDATE", "SELECT"):
                (allowed,) = connection.execute("SELECT has_table_privilege(%s, %s)", [TABLE, right]).fetchone()
                if not allowed:
                    raise EndpointError(f"{self}: no permission; GRANT INSERT, UPDATE, SELECT ON {TABLE} to the user")
        self.write([])

    def write(self, estimates: Sequence[Made]) -> None:
        """Write all rows in one transaction, as soon as the server takes connections."""
        with self._connected(wait=True) as connection, connection.cursor() as cursor:
            cursor.execute(_STAGE)
            with cursor.copy(_COPY) as copy:
                for estimate, spec in estimates:
                    for row in rows(estimate, spec):
                        copy.write_row(tuple(row.values()))
            cursor.execute(_UPSERT)

    def panes(self) -> Iterator[KeptPane]:
        with self._connected() as connection:
            if self._is_there(connection, TABLE):
                with connection.cursor("panes") as cursor:  # of the server, which keeps what is not fetched yet
                    yield from (KeptPane.of_row(*row) for row in cursor.execute(_PANES))

    @staticmethod
    def _is_there(connection: Any, name: str) -> bool:
        (found,) = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [name]).fetchone()
        return bool(found)

    @contextmanager
    def _connected(self, *, wait: bool = False) -> Iterator[Any]:
        """Connect for one transaction, for ``WAIT_SECONDS`` if asked to wait; EndpointError if that fails."""
        with needed(f"{self}:", "postgresql", refusal=EndpointError):
            import psycopg

        def connect() -> Any:
            # A database in SQL_ASCII names no encoding, and its texts would be bytes.
            settings: dict[str, Any] = {"connect_timeout": ANSWER_SECONDS, "client_encoding": "UTF8"}
            return psycopg.connect(self.url, **settings)

        def is_away(error: Exception) -> bool:
            return wait and isinstance(error, psycopg.OperationalError)

        try:
            with _tried_again(retry_filter=is_away)(connect)() as connection:
                yield connection
        except psycopg.ProgrammingError as error:
            if error.sqlstate is None:  # the library cannot read the URL, and its message may hold all of it
                raise EndpointError(f"{self}: not a URL of PostgreSQL; write {_FORM}") from None
            raise EndpointError(f"{self}: the server refuses it ({_line(error)})") from error
        except psycopg.Error as error:
            raise EndpointError(
                f"{self}: check that the server runs, and the user and its password, which PGPASSWORD may hold"
                f" ({_line(error)})"
            ) from error


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
