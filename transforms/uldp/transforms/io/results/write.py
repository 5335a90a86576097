"""The steps that write results."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam

from uldp.schemas.records import Missing
from uldp.transforms.aggregated import Aggregated
from uldp.transforms.io.folders import MISSING
from uldp.transforms.io.results.filing import TogetherFiling
from uldp.transforms.io.results.ids import IdsFiling
from uldp.transforms.io.results.panes import filed_estimates
from uldp.transforms.io.results.private import LateFiling, RejectedFiling
from uldp.transforms.io.results.writers import BundleWriter, FilesWriter, StatisticsWriter


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
        written: Called in the worker for each file of late or rejected reports, with its name below the folder, once
            the file is there.
    """

    out: str
    private: str | None = None
    newest_only: bool = False
    written: Callable[[str], None] | None = None

    def expand(self, aggregated: Any) -> None:
        """Write each kind of result in a step of its own; takes ``Aggregated``."""
        assert isinstance(aggregated, Aggregated)
        private = self.private or self.out
        for records, label, write in (
            (aggregated.estimates, "WriteEstimates", write_estimates(self.out, newest_only=self.newest_only)),
            (aggregated.counts, "WriteCounts", write_statistics(self.out, private, newest_only=self.newest_only)),
            (aggregated.late, "WriteLate", write_private(private, LateFiling, self.written)),
            (aggregated.rejected, "WriteRejected", write_private(private, RejectedFiling, self.written)),
            (aggregated.missing, "WriteMissing", write_missing(self.out)),
        ):
            # Beam would look for an element that a writer puts out, for .4 s of each start of a job.
            _ = records | label >> beam.ParDo(write).with_output_types(type(None))
        for kept in aggregated.kept:
            write_ids = _WriteFn(lambda: FilesWriter(private, IdsFiling(), private=True))
            _ = kept | "WriteIds" >> beam.ParDo(write_ids).with_output_types(type(None))


class _WriteFn(beam.DoFn):
    """Writes the records of each bundle by a writer of its own.

    Args:
        begin: Returns the writer.
    """

    def __init__(self, begin: Callable[[], BundleWriter]) -> None:
        self._begin = begin

    def start_bundle(self) -> None:
        self._writer = self._begin()

    def process(self, record: Any) -> None:
        self._writer.add(record)

    def finish_bundle(self) -> None:
        self._writer.finish()


def write_estimates(out: str, *, newest_only: bool = False) -> _WriteFn:
    """Return the step of estimates."""
    return _WriteFn(lambda: FilesWriter(out, filed_estimates(newest_only=newest_only)))


def write_statistics(out: str, private: str, *, newest_only: bool = False) -> _WriteFn:
    """Return the step of statistics."""
    return _WriteFn(partial(StatisticsWriter, out, private, newest_only=newest_only))


def write_private(
    out: str, filing: type[LateFiling | RejectedFiling], written: Callable[[str], None] | None = None
) -> _WriteFn:
    """Return the step of late or rejected reports."""
    return _WriteFn(lambda: FilesWriter(out, filing(), private=True, written=written))


def write_missing(out: str) -> _WriteFn:
    """Return the step of records of missing messages; see ``missing_messages`` for a loss that is written again."""
    return _WriteFn(lambda: FilesWriter(out, TogetherFiling(MISSING, "missing", Missing.to_avro)))
