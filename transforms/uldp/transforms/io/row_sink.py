"""Endpoints that keep the rows of estimates, and nothing else: all panes, each row once however often it is written."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self, TypeAlias

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.estimate import Estimate
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.endpoints import Endpoint
from uldp.transforms.io.results.names import name_of_window, window_name

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
        return cls(window_name(estimate), estimate.device_digest, estimate.estimator, estimate.age_text)

    @classmethod
    def of_row(
        cls, collection: str, version: int, device_digest: str, start: int, end: int, estimator: str, age: str
    ) -> Self:
        """Return the pane of a row: its ``WINDOW_KEY``, with times in milliseconds, and its age."""
        return cls(name_of_window(collection, version, start, end), device_digest, estimator, age)


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
        """Write the rows of estimates, no two of which are the same pane. Rows that are there are replaced.

        Raises:
            EndpointError: if they cannot be written.
        """

    def panes(self) -> Iterator[KeptPane] | None:
        """Yield the newest pane of each window, device digest and estimator of which rows are there, and maybe others.

        Nothing is created that is not there. None if the place cannot be asked, as here.

        Raises:
            EndpointError: during iteration, if the place does not answer.
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
    """Writes the rows of a bundle."""

    def __init__(self, sink: RowSink, specs: SharedSpecs) -> None:
        self._sink, self._specs = sink, specs

    def start_bundle(self) -> None:
        self._rows = _Rows(self._sink)

    def process(self, estimate: Estimate) -> None:
        self._rows.add(estimate, self._specs.of_pane(estimate))

    def finish_bundle(self) -> None:
        self._rows.write()
