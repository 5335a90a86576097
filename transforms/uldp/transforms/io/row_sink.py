"""Endpoints that keep the rows of estimates, all panes, each row once however often it is written; their SQL."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self, TypeAlias

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.errors import EndpointError
from uldp.schemas.estimate import Estimate
from uldp.schemas.rows import COLUMNS, KEY, STORED_COLUMNS, WINDOW_KEY, Kind
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.endpoints import Endpoint
from uldp.transforms.io.results.names import window_name

#: Rows that a bundle holds before it writes them; an estimate that is larger is written alone.
MAX_ROWS = 1 << 16

#: An estimate, and the spec that it was made under.
Made: TypeAlias = tuple[Estimate, CollectionSpec]


class KeptPane(NamedTuple):
    """A pane of which a place has rows."""

    window: str  # its collection, version and window, as ``window_name`` writes them
    device_digest: str
    estimator: str
    age: str  # the text by which the panes of a window are ordered

    @classmethod
    def of(cls, estimate: Estimate) -> Self:
        """Return the pane of an estimate."""
        return cls(window_name(*estimate.key), estimate.device_digest, estimate.estimator, estimate.age_text)

    @classmethod
    def of_row(
        cls, collection: str, version: int, device_digest: str, start: int, end: int, estimator: str, age: str
    ) -> Self:
        """Return the pane of a row: its ``WINDOW_KEY``, with times in milliseconds, and its age."""
        return cls(window_name(collection, version, start, end), device_digest, estimator, age)


class RowSink(Endpoint):
    """An endpoint that keeps rows. A subclass checks that it is there, see ``check_estimates``, and writes."""

    only_use = "takes only estimates, from --estimates-to"

    @property
    def on_network(self) -> bool:
        """Whether asking it connects to another machine, which only a user may tell a command to do."""
        return True

    @property
    def recorded(self) -> str:
        """The URI under which a job records the place, and an audit opens it again; it holds no password."""
        return str(self)

    @abstractmethod
    def write(self, estimates: Sequence[Made]) -> None:
        """Write the rows of estimates, each pane once, in place of rows that are there; EndpointError if it cannot."""

    def panes(self) -> Iterator[KeptPane] | None:
        """Yield the newest pane of each window, device digest and estimator of which rows are there, and maybe others.

        Nothing is created that is not there. None if the place cannot be asked, as here. Iteration raises EndpointError
        if the place does not answer.
        """
        return None

    def write_all(self, estimates: Iterable[Made]) -> None:
        """Write the rows of estimates as ``write`` does, ``MAX_ROWS`` at a time."""
        rows = _Rows(self)
        for made in estimates:
            rows.add(*made)
        rows.write()

    def publish_estimates(self, estimates: PCollection[Estimate], specs: SharedSpecs, *, native: bool) -> None:
        """Write the rows of each estimate, on each runner with the same transform."""
        write = beam.ParDo(_WriteRowsFn(self, specs)).with_output_types(type(None))
        _ = estimates | "WriteRows" >> write


class _Rows:
    """Rows that wait to be written, at most ``MAX_ROWS`` of them or one estimate."""

    def __init__(self, sink: RowSink) -> None:
        self._sink = sink
        self._clear()

    def _clear(self) -> None:
        self._made: dict[tuple[Any, ...], Made] = {}
        self._rows = 0

    def add(self, estimate: Estimate, spec: CollectionSpec) -> None:
        rows = sum(len(table.values) for table in estimate.tables)
        if self._rows + rows > MAX_ROWS:
            self.write()
        self._made[estimate.key, estimate.device_digest, estimate.estimator, estimate.age] = estimate, spec
        self._rows += rows

    def write(self) -> None:
        if self._made:
            self._sink.write(list(self._made.values()))
        self._clear()


@beam.typehints.with_input_types(Estimate)
class _WriteRowsFn(beam.DoFn):
    def __init__(self, sink: RowSink, specs: SharedSpecs) -> None:
        self._sink, self._specs = sink, specs

    def start_bundle(self) -> None:
        self._rows = _Rows(self._sink)

    def process(self, estimate: Estimate) -> None:
        self._rows.add(estimate, self._specs.of_pane(estimate))

    def finish_bundle(self) -> None:
        self._rows.write()


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
