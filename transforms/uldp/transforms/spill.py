"""Group report columns by key through files, because a runner would pass them through one process.

Beam's local runner passes all elements between stages through the process that runs the pipeline, on one thread. Its
workers are on one machine, so columns can go through the file system, and the runner groups only their file ranges.
"""

import os
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.collector.columns import MixedColumns
from uldp.transforms.coders import MixedColumnsCoder

#: The place of columns: the name of a file, the first byte, and the number of bytes.
FileRange = tuple[str, int, int]


@dataclass
class GroupColumns(
    beam.PTransform[PCollection[tuple[int, MixedColumns]], PCollection[tuple[int, Iterable[FileRange]]]]
):
    """Group columns by key, for ``read_columns`` to read.

    Each bundle writes a file. No step reads the file of a failed bundle, because its name is lost with the bundle.

    Attributes:
        folder: All workers must be able to write and read here while the job runs. A report of one symbol takes 29
            bytes.
    """

    folder: Path

    def expand(self, columns: PCollection[tuple[int, MixedColumns]]) -> PCollection[tuple[int, Iterable[FileRange]]]:
        """Write the columns to files, and group their file ranges."""
        grouped: PCollection[tuple[int, Iterable[FileRange]]] = (
            columns | "SpillColumns" >> beam.ParDo(_SpillFn(self.folder)) | "GroupShards" >> beam.GroupByKey()
        )
        return grouped


@beam.typehints.with_input_types(tuple[int, MixedColumns])
@beam.typehints.with_output_types(tuple[int, FileRange])
class _SpillFn(beam.DoFn):
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: BinaryIO | None = None

    def start_bundle(self) -> None:
        self._close()  # a bundle that failed may have left its file open

    def process(self, element: tuple[int, MixedColumns]) -> Iterator[tuple[int, FileRange]]:
        shard, columns = element
        if self._file is None:
            self._file = (self._folder / uuid.uuid4().hex).open("xb")
        start = self._file.tell()
        self._file.write(MixedColumnsCoder().encode(columns))
        yield shard, (self._file.name, start, self._file.tell() - start)

    def finish_bundle(self) -> None:
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def read_columns(extent: FileRange) -> MixedColumns:
    """Read columns back."""
    path, start, size = extent
    with open(path, "rb") as file:
        return MixedColumnsCoder().decode(os.pread(file.fileno(), size, start))
