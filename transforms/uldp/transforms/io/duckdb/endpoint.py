"""A file of DuckDB as an endpoint, which keeps the rows of estimates."""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uldp.schemas.errors import EndpointError
from uldp.schemas.extras import needed
from uldp.schemas.rows import Kind
from uldp.transforms.io.arrow_rows import arrow_batches
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

_LOG = logging.getLogger(__name__)
_SCHEME = "duckdb:"
_TYPES = {
    Kind.TEXT: "VARCHAR",
    Kind.COUNT: "BIGINT",
    Kind.NUMBER: "DOUBLE",
    Kind.TIME: "TIMESTAMP WITH TIME ZONE",
    Kind.TRUTH: "BOOLEAN",
}
_UPSERT = f"INSERT OR REPLACE INTO {TABLE} BY NAME SELECT * FROM"
_REMEDY = "name another file"
#: How long a worker, and the command when it starts, wait for a file that another process has open.
WAIT_SECONDS = 60.0
_POLL_SECONDS = 0.05
#: Rows of an answer that are fetched at once.
_FETCHED = 1024
#: DuckDB lets several threads of a process have a file open, and refuses one of two that change a table at once.
_ONE_AT_A_TIME = threading.Lock()


def parse(uri: str, config: Path | None = None) -> "DuckDBEndpoint":
    """Read ``duckdb:FILE``. No config is needed; EndpointError if it names no file of this machine."""
    name = uri.removeprefix(_SCHEME)
    if not name or name.startswith((":", "md:")) or "://" in name:
        raise EndpointError(f"{uri}: not a file of this machine; write duckdb:FILE")
    return DuckDBEndpoint(str(Path(name).absolute()))


@dataclass(frozen=True)
class DuckDBEndpoint(RowSink):
    """A file of DuckDB. It is open only while rows are written, because one process at a time may have it open."""

    path: str  # the absolute path of the file

    only_here = True
    on_network = False

    def __str__(self) -> str:
        return f"{_SCHEME}{self.path}"

    def check_estimates(self) -> None:
        """Open the file as a worker does, and create file, table and view; EndpointError if that is not possible."""
        with self._open() as connection:
            connection.execute(create_table(_TYPES))
            asked = "SELECT column_name FROM information_schema.columns WHERE table_name = ?"
            check_columns(str(self), (name for (name,) in connection.execute(asked, [TABLE]).fetchall()), _REMEDY)
            if not connection.execute(asked, [VIEW]).fetchall():
                connection.execute(create_view())
            connection.execute(f"{_UPSERT} {TABLE} WHERE false")

    def write(self, estimates: Sequence[Made]) -> None:
        with self._open() as connection:
            connection.begin()
            for batch in arrow_batches(estimates):
                connection.register("batch", batch)
                connection.execute(f"{_UPSERT} batch")
                connection.unregister("batch")
            connection.commit()

    def panes(self) -> Iterator[KeptPane]:
        if not Path(self.path).exists():
            return
        with self._open(read_only=True) as connection:
            if connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = ?", [TABLE]).fetchall():
                found = connection.execute(newest_panes("epoch_ms({})"))
                while rows := found.fetchmany(_FETCHED):
                    yield from (KeptPane.of_row(*row) for row in rows)

    @contextmanager
    def _open(self, *, read_only: bool = False) -> Iterator[Any]:
        """Open the file once no other process has it open; EndpointError if it waits too long, or at a refusal."""
        with needed(f"{self}:", "duckdb", refusal=EndpointError):
            import duckdb
            import pyarrow  # noqa: F401 (report a missing package before the job runs)
        deadline, waits = time.monotonic() + WAIT_SECONDS, False
        with _ONE_AT_A_TIME:
            while True:
                try:
                    connection = duckdb.connect(self.path, read_only=read_only)
                    break
                except duckdb.Error as error:
                    if "lock" not in str(error) or time.monotonic() > deadline:
                        raise self._refused(error) from error
                    if not waits:
                        waits = True
                        _LOG.warning("%s; waiting %g s for it", self._refused(error), WAIT_SECONDS)
                time.sleep(_POLL_SECONDS)
            try:
                with connection:
                    yield connection
            except duckdb.Error as error:
                raise self._refused(error) from error

    def _refused(self, error: Exception) -> EndpointError:
        reason = str(error).partition("\n")[0]
        remedy = "close the other program that has the file open" if "lock" in reason else _REMEDY
        return EndpointError(f"{self}: {remedy} ({reason})")
