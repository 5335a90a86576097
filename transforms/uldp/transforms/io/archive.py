"""Sources of messages: an archive of files (bounded), and the embedded local stream (unbounded)."""

import hashlib
import json
import logging
import math
import os
import re
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import apache_beam as beam
from apache_beam.coders import StrUtf8Coder
from apache_beam.io.filesystem import FileMetadata
from apache_beam.pvalue import PBegin, PCollection
from apache_beam.testing.test_stream import TestStream

from uldp.schemas.codec.container import sync_marker
from uldp.schemas.errors import EndpointError
from uldp.schemas.places import Runs
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.internals import Given
from uldp.transforms.io.archive_files import ArchiveFiles, left_out_text, listed, walked
from uldp.transforms.io.chunks import Chunk, joined
from uldp.transforms.io.folders import SOURCE_DIGITS, STREAM_FILES, Kind, is_remote, kind_of, mismatch
from uldp.transforms.io.local.events import LISTENING
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import StreamError, count_messages, opened, packed_messages
from uldp.transforms.io.publish_times import bounded_messages
from uldp.transforms.io.remote import fetched, matching
from uldp.transforms.io.stored_files import held_before, left

LOGGER = logging.getLogger(__name__)


def message_files(path: str | Path) -> list[str]:
    """Return the files of messages at ``path``: itself, or all below it that ``archive_files`` reads, in order of name.

    A line in the log says how many files are left out, and why.

    Args:
        path: A path here, or a URL of another of Beam's file systems.

    Raises:
        StreamError, EndpointError: as ``archive_files``; and if some of them are unreadable.
    """
    found = archive_files(path)
    if found.unreadable:
        raise StreamError("\n".join(found.unreadable))
    if found.left_out:
        LOGGER.warning("%s: %s", plain(str(path)), left_out_text(found.left_out))
    return found.read


def archive_files(path: str | Path) -> ArchiveFiles:
    """Return the files of messages at ``path``, and which others are left out.

    Args:
        path: A path here, or a URL of another of Beam's file systems.

    Raises:
        StreamError, EndpointError: if there is no file, or the file system does not answer. A local stream may be
            empty, but may not lack a segment.
    """
    if is_remote(str(path)):
        return _remote_files(str(path))[0]
    local = Path(path)
    if local.is_file():
        return ArchiveFiles([str(local)])
    if not local.is_dir():
        if local.exists():
            opened(local).close()  # refuses what is neither a file nor a directory
        raise StreamError(f"{path}: no such file or directory; check the path, and give files or a stream of messages")
    kind = kind_of(local)
    if kind is Kind.RESULTS:
        raise StreamError(mismatch(local, Kind.MESSAGES))
    if kind is Kind.STREAM:
        LocalStream.open(local).refuse_holes()
        return walked(local, STREAM_FILES)
    found = walked(local)
    if not found.read and not found.unreadable:
        others = f"; {left_out_text(found.left_out)}" if found.left_out else ""
        raise StreamError(f"{path}: holds no .avro file of messages; is this the stream's directory?{others}")
    return found


def _remote_files(url: str) -> tuple[ArchiveFiles, list[FileMetadata]]:
    """Return the files at a URL, and what is known of those that are read."""
    url = url.rstrip("/")
    below = {file.path: file for file in matching(f"{url}/**", hidden=True)}
    found = listed(url, below)
    if not found.read:
        below = {file.path: file for file in matching(url)}
        found.read.extend(below)
    if not found.read:
        others = f"; {left_out_text(found.left_out)}" if found.left_out else ""
        raise StreamError(f"{url}: no such file, and no .avro file below it; check the URL{others}")
    return found, [below[file] for file in found.read]


def archive_digest(path: str | Path) -> str:
    """Return a digest of the files of messages that are at ``path`` now: other files have another digest.

    Local files are identified by their names, sizes and sync markers, so that a copy of an archive has the same digest;
    remote files by the path, size and time of the last update that their file system reports without reading them.

    Raises:
        StreamError, EndpointError: as ``archive_files``.
    """
    known: list[tuple[object, ...]]
    if is_remote(str(path)):
        files = _remote_files(str(path))[1]
        known = [(file.path, file.size_in_bytes, file.last_updated_in_seconds) for file in files]
    else:
        known = [_identify(Path(file)) for file in archive_files(path).read]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32]


def _identify(path: Path) -> tuple[str, int, str]:
    with opened(path) as file:
        return path.name, os.fstat(file.fileno()).st_size, sync_marker(file).hex()


def damaged_files(files: Iterable[str], *, decode: bool = False, published: int | None = None) -> list[str]:
    """Return a line about each file that cannot be read.

    Args:
        files: Paths, or URLs of other file systems.
        decode: Whether to decode all messages. Without, it looks at the ends of blocks, and at no file behind a URL:
            then a gigabyte takes tens of milliseconds.
        published: As in ``packed_messages``.
    """
    here = (file for file in files if decode or not is_remote(file))
    return [line for file in here if (line := _damage(file, decode, published)) is not None]


def _damage(path: str, decode: bool, published: int | None) -> str | None:
    try:
        with _opened_anywhere(path) as file:
            if decode:
                deque(packed_messages(file, path, published), maxlen=0)
            else:
                count_messages(file, path, published)
    except (StreamError, EndpointError) as error:
        return str(error)
    except OSError as error:
        return f"{plain(path)}: {error.strerror}; check the file and its permissions"
    return None


def held_twice(files: Iterable[str]) -> dict[str, Runs]:
    """Return which records of files of late messages another of the files holds too, see ``held_before``.

    Of files behind a URL, it looks at those alone whose names say that they are of one source: it has to fetch them.
    """
    files = sorted(files)
    sources = Counter(_source_digits(file) for file in files)
    looked_at = [file for file in files if not is_remote(file) or sources[_source_digits(file)] > 1]
    return held_before((file for file in looked_at if not is_remote(file) or _source_digits(file)), _opened_anywhere)


def _source_digits(file: str) -> str:
    """Return the half of the name of a file of late messages that stands for their source; empty of another file."""
    name = file.rpartition("/")[2]
    return name[:SOURCE_DIGITS] if re.fullmatch(rf"[0-9a-f]{{{2 * SOURCE_DIGITS}}}\.avro", name) else ""


def _opened_anywhere(path: str) -> AbstractContextManager[IO[bytes]]:
    return fetched(path) if is_remote(path) else opened(path)


@dataclass
class ReadArchive(beam.PTransform[PBegin, PCollection[Chunk]]):
    """Read the messages of container files, here or on another of Beam's file systems; bounded.

    Attributes:
        path: The file, or the folder.
        published: As in ``packed_messages``.

    Raises:
        StreamError, EndpointError: as ``message_files``; and if files on this machine are damaged, so far as that shows
            without decoding messages. The message names all of them.
    """

    path: str | Path
    published: int | None = None

    def __post_init__(self) -> None:
        super().__init__()
        self._files = message_files(self.path)
        if damaged := damaged_files(self._files, published=self.published):
            raise StreamError("\n".join(damaged))
        self._held = held_twice(self._files)

    def expand(self, pbegin: PBegin) -> PCollection[Chunk]:
        """Spread the files over workers."""
        chunks: PCollection[Chunk] = (
            pbegin
            | "Files" >> beam.Create(self._files)
            | "Spread" >> beam.Reshuffle()
            | "ReadFile" >> beam.ParDo(_ReadFilesFn(str(self.path), len(self._files), self.published, self._held))
        )
        return chunks


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(Chunk)
class _ReadFilesFn(beam.DoFn):
    """Reads files of messages, and logs its progress from time to time."""

    LOG_EVERY_SECONDS = 5.0

    def __init__(self, root: str, files: int, published: int | None, held: Mapping[str, Runs]) -> None:
        self._root, self._of, self._published, self._held = root, files, published, held
        self._files = self._messages = 0
        self._logged = -math.inf

    def setup(self) -> None:
        self._logged = time.monotonic()

    def process(self, path: str) -> Iterator[Chunk]:
        with _opened_anywhere(path) as file:
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


@dataclass
class ReadLocalStream(beam.PTransform[PBegin, PCollection[Chunk]]):
    """Follow a local stream on the ``BundleBasedDirectRunner``; unbounded.

    Attributes:
        endpoint: Address of the ``LocalStreamEvents`` that announces its segments.
    """

    endpoint: str

    def expand(self, pbegin: PBegin) -> PCollection[Chunk]:
        """Send each segment as one element, so that the runner's cost of an element is paid once for many messages."""
        chunks: PCollection[Chunk] = (
            pbegin
            | "Segments" >> TestStream(coder=StrUtf8Coder(), endpoint=self.endpoint).with_output_types(str)
            | "ReadSegment" >> beam.ParDo(_ReadSegmentsFn(self.endpoint))
        )
        return chunks


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(Chunk)
class _ReadSegmentsFn(beam.DoFn):
    """Reads segments, and reports to the ``LocalStreamEvents`` that announced them, in the same process."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    def start_bundle(self) -> None:
        self._messages: dict[str, int] = {}

    def process(self, path: str, announced: Given = beam.DoFn.TimestampParam) -> Iterator[Chunk]:
        events, watermark, messages = LISTENING[self._endpoint], announced.micros // 1000, 0
        events.refuse(path, read=False)
        events.begin(path)
        with opened(path) as file:
            for packed in joined(packed_messages(file, path)):
                chunk = Chunk(bounded_messages(packed.messages, watermark, events.latest()))
                messages += len(chunk)
                yield chunk
        events.refuse(path, read=True)
        self._messages[path] = messages

    def finish_bundle(self) -> None:
        """Report the whole bundle, because the runner tries a bundle again that has failed."""
        LISTENING[self._endpoint].read(self._messages)
