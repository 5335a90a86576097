"""The steps that write results."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems

from uldp.schemas.pane import PaneHeader
from uldp.schemas.records import Missing
from uldp.schemas.statistic import Statistic
from uldp.transforms.aggregated import Aggregated
from uldp.transforms.io.durable_files import make_folder, remove_file, write_files
from uldp.transforms.io.folders import COUNTS, FEW, MISSING, is_remote
from uldp.transforms.io.results.filing import MAX_BYTES, File, Filing, TogetherFiling
from uldp.transforms.io.results.ids import IdsFiling
from uldp.transforms.io.results.panes import filed_cells, filed_estimates
from uldp.transforms.io.results.private import LateFiling, RejectedFiling


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


class BundleWriter(Protocol):
    """Writes the records of a bundle."""

    def add(self, record: Any) -> None:
        """Add a record."""

    def finish(self) -> None:
        """Write all that is left."""


class FilesWriter:
    """Writes the files into which a filing divides the records of a bundle, several at once.

    Args:
        out: The folder.
        filing: The filing.
        private: Whether only the owner may read the files.
        written: Called for each file once it is there, with its name below the folder.
    """

    def __init__(
        self, out: str, filing: Filing[Any], *, private: bool = False, written: Callable[[str], None] | None = None
    ) -> None:
        self._out, self._filing, self._private, self._written = out, filing, private, written
        self._files: list[File] = []
        self._nbytes = 0

    def add(self, record: Any) -> None:
        """Add a record, and write the files that are whole once they reach ``MAX_BYTES``."""
        for file in self._filing.add(record):
            self._take(file)

    def finish(self) -> None:
        """Write all files, and then remove what they supersede."""
        for file in self._filing.rest():
            self._take(file)
        self._write()
        for name in self._filing.superseded():
            remove_file(FileSystems.join(self._out, name))

    def _take(self, file: File) -> None:
        self._files.append(file)
        self._nbytes += len(file.content)
        if self._nbytes >= MAX_BYTES:
            self._write()

    def _write(self) -> None:
        if self._private and self._files and not is_remote(self._out):
            make_folder(Path(self._out).absolute())  # the root itself may be for others too
        files = [(FileSystems.join(self._out, name), content) for name, content in self._files]
        write_files(files, private=self._private)
        if self._written is not None:
            for name, _ in self._files:
                self._written(name)
        self._files, self._nbytes = [], 0


class StatisticsWriter:
    """Writes the statistics of panes, and keeps the cells apart if a pane has too few reports."""

    def __init__(self, out: str, private: str, *, newest_only: bool = False) -> None:
        self._few_cells = filed_cells(FEW, newest_only=newest_only)
        self._counts = FilesWriter(out, filed_cells(COUNTS, newest_only=newest_only))
        self._few = FilesWriter(private, self._few_cells, private=True)

    def add(self, statistic: Statistic) -> None:
        """Add a statistic. The cells of the pane before may be apart although those of this one are not."""
        if statistic.apart:
            self._few.add(statistic)
            self._counts.add(PaneHeader(**statistic.header()))
        else:
            self._few_cells.supersede(statistic)
            self._counts.add(statistic)

    def finish(self) -> None:
        """Write all files."""
        self._few.finish()
        self._counts.finish()


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
