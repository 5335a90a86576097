"""The source of an archive: files of messages, which are all there when it is read."""

import logging
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import apache_beam as beam
from apache_beam.pvalue import PBegin, PCollection

from uldp.schemas.places import Runs
from uldp.schemas.records import Missing
from uldp.transforms.io.archive import damaged_files, held_twice, message_files, missing_segments, opened_anywhere
from uldp.transforms.io.chunks import Chunk, joined
from uldp.transforms.io.message_files import StreamError, packed_messages
from uldp.transforms.io.stored_files import left

LOGGER = logging.getLogger(__name__)


@dataclass
class ReadArchive(beam.PTransform[PBegin, PCollection[Chunk]]):
    """Read the messages of container files, here or on another of Beam's file systems; bounded.

    Of a local stream, the messages of segments that were given up are missing. StreamError or EndpointError as
    ``message_files``; and if files on this machine are damaged, so far as that shows without decoding messages: the
    error names all of them.
    """

    path: str | Path  # the file, or the folder
    published: int | None = None  # as in ``packed_messages``

    def __post_init__(self) -> None:
        self._files = message_files(self.path)
        if damaged := damaged_files(self._files, published=self.published):
            raise StreamError("\n".join(damaged))
        self._held = held_twice(self._files)
        self._missing = missing_segments(self.path)

    def expand(self, pbegin: PBegin) -> PCollection[Chunk]:
        """Spread the files over workers."""
        read = _ReadFilesFn(str(self.path), len(self._files), self.published, self._held, self._missing)
        chunks: PCollection[Chunk] = (
            pbegin
            | "Files" >> beam.Create([*self._files, *self._missing])
            | "Spread" >> beam.Reshuffle()
            | "ReadFile" >> beam.ParDo(read)
        )
        return chunks


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(Chunk)
class _ReadFilesFn(beam.DoFn):
    """Reads files of messages, and logs its progress from time to time."""

    LOG_EVERY_SECONDS = 5.0

    def __init__(
        self, root: str, files: int, published: int | None, held: Mapping[str, Runs], missing: Mapping[str, Missing]
    ) -> None:
        self._root, self._of, self._published, self._held, self._missing = root, files, published, held, missing
        self._files = self._messages = 0
        self._logged = -math.inf

    def setup(self) -> None:
        self._logged = time.monotonic()

    def process(self, path: str) -> Iterator[Chunk]:
        if path in self._missing:
            yield Chunk((), (self._missing[path],))
            return
        with opened_anywhere(path) as file:
            parts = packed_messages(file, path, self._published, root=self._root)
            for chunk in joined(left(parts, self._held.get(path, ()))):
                self._messages += len(chunk)
                self._log()
                yield chunk
        self._files += 1

    def _log(self) -> None:
        if time.monotonic() - self._logged >= self.LOG_EVERY_SECONDS:
            self._logged = time.monotonic()
            LOGGER.info("%s messages read, %s of %s files", f"{self._messages:,}", f"{self._files:,}", f"{self._of:,}")
