"""Files as an endpoint: a local stream or an archive here, or an archive on another of Beam's file systems."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.schemas.errors import EndpointError
from uldp.transforms.io.archive import archive_digest, archive_files, damaged_files
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.io.endpoints import Access, Endpoint
from uldp.transforms.io.folders import is_remote
from uldp.transforms.io.listing import LeftOut, Reason
from uldp.transforms.io.local.begun import begun, is_unfinished
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.read_archive import ReadArchive


def parse(uri: str, config: Path | None = None) -> "FilesEndpoint":
    """Read any text: a path or a URL. No config is needed."""
    return FilesEndpoint(uri)


def published(endpoint: Endpoint, by: int | None) -> Endpoint:
    """Return an endpoint that takes messages without a publish time as of then; EndpointError if all have one."""
    if by is None:
        return endpoint
    if not isinstance(endpoint, FilesEndpoint):
        raise EndpointError(f"{endpoint}: its messages have publish times; leave out --published-by")
    return replace(endpoint, published=by)


@dataclass(frozen=True)
class FilesEndpoint(Endpoint):
    """A directory or file of messages."""

    location: str  # a path on this machine, or a URL
    #: The publish time of messages whose file holds none, in milliseconds; None to refuse such a file.
    published: int | None = None

    def __str__(self) -> str:
        return self.location

    @property
    def path(self) -> Path | None:
        """The path, if it is on this machine."""
        return None if is_remote(self.location) else Path(self.location)

    @property
    def name(self) -> str:
        return self.location if self.path is None else str(self.path.absolute())

    def check(self, access: Access) -> None:
        """Refuse to take records of a pipeline. Whether there is something to read is known when it is read."""
        if access == "WRITE":
            raise EndpointError(f"{self}: not a topic; write kafka:HOST:PORT/TOPIC or pubsub:projects/P/topics/T")

    def check_estimates(self) -> None:
        """Refuse too. Tables and folders with a scheme take estimates besides a topic."""
        raise EndpointError(
            f"{self}: takes no estimates; write duckdb:FILE, parquet:FOLDER, postgresql://USER@HOST/DATABASE,"
            " bigquery:P.D.T, kafka:HOST:PORT/TOPIC or pubsub:projects/P/topics/T"
        )

    def content(self) -> str:
        """Return a digest of names, sizes and markers of the files, see ``archive_digest``, with ``published``."""
        digest = archive_digest(self.location)
        return digest if self.published is None else f"{digest}@{self.published}"

    def left_out(self) -> Mapping[Reason, LeftOut]:
        return archive_files(self.location).left_out

    def damage(self) -> Sequence[str]:
        return damaged_files(archive_files(self.location).read, decode=True, published=self.published)

    def overlaps(self, out: str) -> bool:
        if self.path is not None and not is_remote(out):
            one, other = self.path.resolve(), Path(out).resolve()
            return one == other or one in other.parents or other in one.parents
        if self.path is None and is_remote(out):
            one_url, other_url = (f"{url.rstrip('/')}/" for url in (self.location, out))
            return one_url.startswith(other_url) or other_url.startswith(one_url)
        return False

    def read_whole(self, pipeline: beam.Pipeline) -> PCollection[Chunk]:
        archived: PCollection[Chunk] = pipeline | "ReadArchive" >> ReadArchive(self.location, self.published)
        return archived

    @contextmanager
    def writing(self, *, simulated_clock: bool) -> Iterator[LocalStream]:
        """Append to a new or unfinished local stream, which is closed at the end, or to one whose clock is real.

        StreamError if there is something else, or a stream that was closed; EndpointError if it is not on this machine.
        """
        if self.path is None:
            raise EndpointError(f"{self}: not a directory on this machine; name one, or a topic")
        if simulated_clock or not self.path.exists() or is_unfinished(self.path):
            with begun(self.path, simulated_clock=simulated_clock) as stream:
                yield stream
        else:
            yield LocalStream.open(self.path)
