"""A table of BigQuery: its name and columns, the client of an extra that inserts rows, and errors with remedies."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from uldp.schemas.errors import EndpointError
from uldp.schemas.extras import needed
from uldp.schemas.rows import KEY, STORED_COLUMNS, Kind

#: Seconds to wait for an answer when a person waits.
ANSWER_SECONDS = 9.0
#: The permission to insert rows. ``roles/bigquery.dataEditor`` has it, and the permission to get the table.
PERMISSION = "bigquery.tables.updateData"

_NO_CREDENTIALS = "no credentials; set GOOGLE_APPLICATION_CREDENTIALS or run: gcloud auth application-default login"
_NOT_PERMITTED = "no permission; grant the job's account roles/bigquery.dataEditor on the table"
_NO_QUERIES = "no permission; grant the job's account roles/bigquery.jobUser on the project, to ask which rows it has"
#: By HTTP status.
_REMEDIES = {
    401: _NO_CREDENTIALS,
    403: _NOT_PERMITTED,
    404: "does not exist; create the table and its view from deploy/bigquery, as deploy/topics/pubsub/bigquery.tf does",
}
_TYPES = {
    Kind.TEXT: "STRING",
    Kind.COUNT: "INTEGER",
    Kind.NUMBER: "FLOAT",
    Kind.TIME: "TIMESTAMP",
    Kind.TRUTH: "BOOLEAN",
}
#: The statuses with which a server says that it does not know a method.
_UNKNOWN_METHOD = (404, 501)


class BigQueryError(EndpointError):
    """BigQuery refuses rows or a table, or a library is missing. The message says what to do."""


def parse_table(text: str) -> str:
    """Return the name of a table, ``PROJECT.DATASET.TABLE``; BigQueryError if it has another form."""
    # A project's name may begin with a domain: example.com:project.
    if not re.fullmatch(r"[a-z][a-z0-9.:-]*\.\w+\.[\w-]+", text):
        raise BigQueryError(f"{text!r}: not a table of BigQuery; write PROJECT.DATASET.TABLE")
    return text


def columns() -> list[dict[str, str]]:
    """Return the columns of the table, in the form that BigQuery's API and ``bq mk --schema`` accept."""
    return [
        {"name": name, "type": _TYPES[kind], "mode": "REQUIRED" if name in KEY else "NULLABLE"}
        for name, kind in STORED_COLUMNS.items()
    ]


def new_client(table: str) -> Any:
    """Connect with the process's own credentials; BigQueryError if the client library is not installed."""
    with needed("BigQuery", "gcp", refusal=BigQueryError):
        import google.cloud.bigquery as bigquery
    return bigquery.Client(project=table.rsplit(".", 2)[0])


def check_table(table: str) -> None:
    """Check that the table has all columns, and that this process may insert rows; BigQueryError says what to do."""
    asking: dict[str, Any] = {"retry": None, "timeout": ANSWER_SECONDS}
    with _answers(table):
        client = new_client(table)
    with contextlib.closing(client):
        with _answers(table):
            found = client.get_table(table, **asking)
        there = {field.name for field in found.schema}
        if missing := [name for name in STORED_COLUMNS if name not in there]:
            raise BigQueryError(
                f"bigquery:{table}: has no column {missing[0]}; create the table from"
                " deploy/bigquery/estimate_panes.json, or name another table"
            )
        try:
            with _answers(table):
                held = client.test_iam_permissions(table, [PERMISSION], **asking)
        except BigQueryError as error:
            if getattr(error.__cause__, "code", None) in _UNKNOWN_METHOD:
                return  # an emulator, which permits everything to everyone
            raise
    if PERMISSION not in held.get("permissions", ()):
        raise BigQueryError(f"bigquery:{table}: {_NOT_PERMITTED} (missing: {PERMISSION})")


def query_rows(table: str, query: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows that a query finds; BigQueryError if BigQuery does not answer, or this process may not query."""
    with _answers(table, _REMEDIES | {403: _NO_QUERIES}), contextlib.closing(new_client(table)) as client:
        for row in client.query(query).result():
            yield row.values()


@contextlib.contextmanager
def _answers(table: str, remedies: Mapping[int, str] = _REMEDIES) -> Iterator[None]:
    """Turn errors of HTTP, the connection and the credentials into BigQueryError, with remedies by status."""
    try:
        yield
    except Exception as error:
        status, kind = getattr(error, "code", None), type(error).__name__
        if isinstance(status, int):
            remedy = remedies.get(status, "BigQuery refused the request; see its documentation of error codes")
        elif kind in ("DefaultCredentialsError", "RefreshError"):
            remedy = _NO_CREDENTIALS
        elif isinstance(error, OSError) or kind == "TransportError":
            remedy = "no answer; check the network, and BIGQUERY_EMULATOR_HOST"
        else:
            raise
        raise BigQueryError(f"bigquery:{table}: {remedy} ({str(error).partition(chr(10))[0]})") from error
