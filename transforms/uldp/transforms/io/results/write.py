"""The steps that write results."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import AsIter
from apache_beam.transforms.window import GlobalWindows

from uldp.schemas.records import Missing
from uldp.transforms.aggregated import Aggregated
from uldp.transforms.internals import WindowedValue
from uldp.transforms.io.folders import MISSING
from uldp.transforms.io.results.filing import JoinedFiling
from uldp.transforms.io.results.pane_files import ESTIMATES
from uldp.transforms.io.results.panes import PaneFiling
from uldp.transforms.io.results.private import IdsFiling, LateFiling, RejectedFiling
from uldp.transforms.io.results.signing import write_journal
from uldp.transforms.io.results.writers import FilesWriter, StatisticsWriter


@dataclass
class WriteResults(beam.PTransform[Any, None]):
    """Write all outputs of ``Aggregate`` below one folder, or those that are private below another one.

    Late and rejected reports hold whatever clients have sent, and the cells of windows of few reports may be those of
    single users, so only the owner may read their files.

    Attributes:
        out: The folder, on any of Beam's file systems.
        private: Another folder for late and rejected reports and for cells of few reports; None to write them below
            ``out`` too.
        newest_only: Whether to remove the file of a pane once the pane that supersedes it is written.
        written: Called in the worker with the lines of a journal about each bundle that is written.
        sign: Whether to write a journal of these lines once all is written; the inputs are bounded.
    """

    out: str
    private: str | None = None
    newest_only: bool = False
    written: Callable[[bytes], None] | None = None
    sign: bool = False

    def expand(self, aggregated: Any) -> None:
        """Write each kind of result in a step of its own; takes ``Aggregated``."""
        assert isinstance(aggregated, Aggregated)
        private = self.private or self.out
        lines = []
        for records, label, write in (
            (aggregated.estimates, "WriteEstimates", write_estimates(self.out, newest_only=self.newest_only)),
            (aggregated.counts, "WriteCounts", write_statistics(self.out, private, newest_only=self.newest_only)),
            (aggregated.late, "WriteLate", write_private(private, LateFiling)),
            (aggregated.rejected, "WriteRejected", write_private(private, RejectedFiling)),
            (aggregated.missing, "WriteMissing", _WriteFn(lambda: FilesWriter(self.out, MissingFiling()))),
        ):
            write.written, write.sign = self.written, self.sign
            # Beam would look for an element that a writer puts out, for .4 s of each start of a job.
            written = records | label >> beam.ParDo(write).with_output_types(bytes if self.sign else type(None))
            if self.sign:
                lines.append(written | f"Sign{label[5:]}" >> beam.WindowInto(GlobalWindows()))
        for kept in aggregated.kept:
            _ = kept | "WriteIds" >> beam.ParDo(write_private(private, IdsFiling)).with_output_types(type(None))
        if self.sign:
            begin = aggregated.counts.pipeline | "Sign" >> beam.Create([self.out])
            _ = begin | "WriteJournal" >> beam.Map(write_journal, *map(AsIter, lines)).with_output_types(type(None))


class _WriteFn(beam.DoFn):
    """Writes the records of each bundle by a writer of its own."""

    def __init__(self, begin: Callable[[], FilesWriter | StatisticsWriter]) -> None:
        self._begin = begin
        self.written: Callable[[bytes], None] | None = None  # as in ``WriteResults``
        self.sign = False  # whether to put out the lines of a journal about each bundle that is written

    def start_bundle(self) -> None:
        self._writer = self._begin()

    def process(self, record: Any, window: Any = beam.DoFn.WindowParam) -> None:
        self._writer.add(record)
        self._window = window

    def finish_bundle(self) -> Sequence[WindowedValue]:
        self._writer.finish()
        lines = bytes(self._writer.lines)
        if self.written is not None:
            self.written(lines)
        return [WindowedValue(lines, self._window.max_timestamp(), (self._window,))] if self.sign and lines else []


def write_estimates(out: str, *, newest_only: bool = False) -> _WriteFn:
    """Return the step of estimates."""
    return _WriteFn(lambda: FilesWriter(out, PaneFiling(ESTIMATES, newest_only=newest_only)))


def write_statistics(out: str, private: str, *, newest_only: bool = False) -> _WriteFn:
    """Return the step of statistics."""
    return _WriteFn(partial(StatisticsWriter, out, private, newest_only=newest_only))


def write_private(out: str, filing: type[LateFiling | RejectedFiling | IdsFiling]) -> _WriteFn:
    """Return the step of what the owner alone may read."""
    return _WriteFn(lambda: FilesWriter(out, filing(), private=True))


class MissingFiling(JoinedFiling[Missing]):
    """Files records of missing messages; see ``missing_messages`` for a loss that is written again."""

    folder, schema = MISSING, "missing"

    def values_of(self, record: Missing) -> Iterator[Mapping[str, Any]]:
        yield record.to_avro()
