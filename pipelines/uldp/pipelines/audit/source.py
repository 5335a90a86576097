"""The source of an audit: its messages again, each part with the name by which an operator finds it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from uldp.schemas.codec.container import sync_marker
from uldp.schemas.codec.packed import PackedMessages
from uldp.schemas.errors import RequestError
from uldp.schemas.file_errors import file_error_text
from uldp.schemas.places import Runs
from uldp.transforms.internals import MAX_TIMESTAMP
from uldp.transforms.io.archive import held_twice, message_files
from uldp.transforms.io.endpoints import Endpoint
from uldp.transforms.io.files import FilesEndpoint
from uldp.transforms.io.folders import Kind, kind_of
from uldp.transforms.io.kafka.endpoint import KafkaEndpoint
from uldp.transforms.io.kafka.reader import KafkaReader
from uldp.transforms.io.kafka.source import KafkaSource
from uldp.transforms.io.local.segments import number_of
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import StreamError, opened, packed_messages
from uldp.transforms.io.stored_files import left

#: Takes the error about a part that cannot be read.
Damaged = Callable[[ValueError], object]


class Part(NamedTuple):
    """Some messages of a part of a source; all of a part come one after the other."""

    name: str  # the file, or the offsets of a partition
    clock: str  # names whose clock gave the publish times, see ``Recount.add``
    messages: PackedMessages


@dataclass(frozen=True)
class ArchiveSource:
    """Files of messages on this machine."""

    path: Path  # the file, or the folder
    published: int | None = None  # as in ``packed_messages``
    closed = True  # whether nothing will be appended

    def read(self, damaged: Damaged) -> Iterator[Part]:
        """Yield the messages of each file."""
        files = message_files(self.path)
        held = held_twice(files)
        for path in files:
            yield from _read_file(Path(path), path, damaged, self.published, held.get(path, ()))


@dataclass(frozen=True)
class StreamSource:
    """A local stream."""

    stream: LocalStream

    @property
    def closed(self) -> bool:
        """Whether the stream is closed."""
        return self.stream.closed

    def read(self, damaged: Damaged) -> Iterator[Part]:
        """Yield the messages of each segment; all have one clock."""
        for path in self.stream.segments():
            yield from _read_file(path, "", damaged)

    def names(self) -> list[str]:
        """Return the names of the segments."""
        return [path.name for path in self.stream.segments()]

    def holes(self) -> Iterator[str]:
        """Yield the names of segments that must be there and are not."""
        for missing in self.stream.missing():
            yield from (f"{number:012d}.avro" for number in missing)

    def removed(self, name: str) -> bool:
        """Return whether the settings say that the segment was removed on purpose, or given up."""
        return number_of(name) < self.stream.first or self.stream.given_up_at(number_of(name)) is not None

    def identify(self, name: str) -> tuple[str, int]:
        """Return the sync marker of a segment, in hexadecimal digits, and its size in bytes."""
        path = self.stream.path / name
        with opened(path) as file:
            return sync_marker(file).hex(), path.stat().st_size


def _read_file(
    path: Path, clock: str, damaged: Damaged, published: int | None = None, held: Runs = ()
) -> Iterator[Part]:
    try:
        with opened(path) as file:
            for packed in left(packed_messages(file, str(path), published), held):
                yield Part(path.name, clock, packed)
    except (StreamError, OSError) as error:
        damaged(error if isinstance(error, StreamError) else ValueError(file_error_text(error)))


@dataclass(frozen=True)
class TopicSource:
    """A topic of Kafka, up to where it can be read now."""

    endpoint: KafkaEndpoint  # the topic
    #: Lines about what it no longer has, or does not give yet, from the last reading.
    notes: list[str] = field(default_factory=list)
    closed = False

    def read(self, damaged: Damaged) -> Iterator[Part]:
        """Yield runs of offsets; each partition has a clock of its own."""
        self.endpoint.check("READ")
        self.notes.clear()
        reader = KafkaReader(KafkaSource(self.endpoint.topic, stop_at_end=True), {}, say=self.notes.append)
        more = reader.start()
        while more or reader.get_watermark() < MAX_TIMESTAMP:
            yield from _runs(PackedMessages.of(reader.get_current().messages))
            more = reader.advance()


def _runs(messages: PackedMessages) -> Iterator[Part]:
    """Cut messages where the partition changes."""
    places = [messages.source(row).rpartition("/") for row in range(len(messages))]
    for partition, rows in groupby(range(len(places)), lambda row: places[row][0]):
        first, *others = rows
        last = others[-1] if others else first
        name = f"{partition}, offsets {places[first][2]} to {places[last][2]}"
        yield Part(name, partition, messages[first : last + 1])


#: What can be read a second time.
Source = ArchiveSource | StreamSource | TopicSource


def source_of(endpoint: Endpoint) -> Source:
    """Return the source behind an endpoint; ValueError if it is not on this machine, or its broker forgets."""
    if isinstance(endpoint, KafkaEndpoint):
        return TopicSource(endpoint)
    if not isinstance(endpoint, FilesEndpoint):
        raise RequestError(f"{endpoint}: cannot be read a second time; audit an archive of its messages")
    if endpoint.path is None:
        raise RequestError(f"{endpoint}: not on this machine; copy it here, and audit the copy")
    if endpoint.path.is_dir() and kind_of(endpoint.path) is Kind.STREAM:
        return StreamSource(LocalStream.open(endpoint.path))
    return ArchiveSource(endpoint.path, endpoint.published)
