"""A table of BigQuery as an endpoint, which keeps the rows of estimates. It appends rows, and a view shows each once.

In Beam, only Java has upserts through the Storage Write API, so a pipeline built without Java cannot use them. Beam's
own streaming inserts draw their insert ids at random. So this endpoint inserts the rows itself, with an id that follows
from the key of the row. BigQuery mostly drops a row if the same id came within the last minute. If it lets one
through, the view takes one of the two.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, starmap
from pathlib import Path

from uldp.schemas.rows import KEY
from uldp.transforms.io.bigquery.table import BigQueryError, check_table, new_client, parse_table, query_rows
from uldp.transforms.io.json_rows import JsonRow, json_rows
from uldp.transforms.io.row_sink import KeptPane, Made, RowSink, newest_panes

_SCHEME = "bigquery:"
#: Rows of a request; the recommended number.
MAX_ROWS = 500
#: Bytes of the rows of a request; BigQuery accepts 10 MB. A larger row has a request of its own.
MAX_BYTES = 5 << 20


def parse(uri: str, config: Path | None = None) -> "BigQueryEndpoint":
    """Read ``bigquery:PROJECT.DATASET.TABLE``, without a config; BigQueryError if it has another form."""
    return BigQueryEndpoint(parse_table(uri.removeprefix(_SCHEME)))


@dataclass(frozen=True)
class BigQueryEndpoint(RowSink):
    """A table to which jobs append rows; see ``deploy/bigquery`` for the table and its view."""

    table: str  # ``PROJECT.DATASET.TABLE``

    def __str__(self) -> str:
        return f"{_SCHEME}{self.table}"

    def check_estimates(self) -> None:
        check_table(self.table)

    def write(self, estimates: Sequence[Made]) -> None:
        """Append all rows, in requests that BigQuery accepts; a BigQueryError of a row has the bundle tried again."""
        with closing(new_client(self.table)) as client:
            for request in _requests(chain.from_iterable(starmap(json_rows, estimates))):
                errors = client.insert_rows_json(self.table, request, row_ids=list(map(insert_id, request)))
                if errors:
                    raise BigQueryError(f"{self}: refused {len(errors)} of {len(request)} rows: {errors[0]}")

    def panes(self) -> Iterator[KeptPane]:
        """Ask for the newest panes in one query, for which BigQuery charges."""
        yield from starmap(KeptPane.of_row, query_rows(self.table, newest_panes("UNIX_MILLIS({})", f"`{self.table}`")))


def insert_id(row: JsonRow) -> str:
    """Return an id that rows of the same key share, so that a bundle that is tried again sends the same ids."""
    return hashlib.sha256(json.dumps([row[name] for name in KEY]).encode()).hexdigest()[:32]


def _requests(rows: Iterable[JsonRow]) -> Iterator[list[JsonRow]]:
    request: list[JsonRow] = []
    room = MAX_BYTES
    for row in rows:
        nbytes = len(json.dumps(row))
        if request and (len(request) == MAX_ROWS or nbytes > room):
            yield request
            request, room = [], MAX_BYTES
        request.append(row)
        room -= nbytes
    if request:
        yield request
