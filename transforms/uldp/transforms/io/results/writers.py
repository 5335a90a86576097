"""Writers of the records of a bundle, into the files by which a filing divides them."""

from pathlib import Path
from typing import Any

from uldp.schemas.pane import PaneHeader
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.durable_files import make_folder, remove_file, write_files
from uldp.transforms.io.folders import below, is_remote
from uldp.transforms.io.results.filing import MAX_BYTES, File, Filing
from uldp.transforms.io.results.pane_files import FEW_STATISTICS, STATISTICS
from uldp.transforms.io.results.panes import PaneFiling


class FilesWriter:
    """Writes the files into which a filing divides the records of a bundle, several at once."""

    def __init__(self, out: str, filing: Filing[Any, Any], *, private: bool = False) -> None:
        self._out, self._filing, self._private = out, filing, private
        self._files: list[File] = []
        self._nbytes = 0
        self.lines = bytearray()

    def add(self, record: Any) -> None:
        """Add a record, and write the files that are whole once they reach ``MAX_BYTES``."""
        self.lines += self._filing.line_of(record)
        for file in self._filing.add(record):
            self._take(file)

    def finish(self) -> None:
        """Write all files, and then remove what they supersede."""
        for file in self._filing.rest():
            self._take(file)
        self._write()
        for name in self._filing.superseded():
            remove_file(below(self._out, name))

    def _take(self, file: File) -> None:
        self._files.append(file)
        self._nbytes += len(file.content)
        if self._nbytes >= MAX_BYTES:
            self._write()

    def _write(self) -> None:
        if self._private and self._files and not is_remote(self._out):
            make_folder(Path(self._out).absolute())  # the root itself may be for others too
        files = [(below(self._out, name), content) for name, content in self._files]
        write_files(files, private=self._private)
        for file in self._files:
            self.lines += self._filing.line_of_file(file)
        self._files, self._nbytes = [], 0


class StatisticsWriter:
    """Writes the statistics of panes, and keeps the cells apart if a pane has too few reports."""

    def __init__(self, out: str, private: str, *, newest_only: bool = False) -> None:
        self._few_cells = PaneFiling(FEW_STATISTICS, newest_only=newest_only)
        self._counts = FilesWriter(out, PaneFiling(STATISTICS, newest_only=newest_only))
        self._few = FilesWriter(private, self._few_cells, private=True)
        self.lines = self._counts.lines

    def add(self, pane: PaneHeader) -> None:
        """Add a statistic, or a header alone if cells that are apart are not known.

        The cells of the pane before may be apart although those of this one are not.
        """
        if not pane.apart:
            self._few_cells.supersede(pane)
            self._counts.add(pane)
            return
        if isinstance(pane, Statistic):
            self._few.add(pane)
        self._counts.add(PaneHeader(**pane.header()))

    def finish(self) -> None:
        """Write all files."""
        self._few.finish()
        self._counts.finish()
