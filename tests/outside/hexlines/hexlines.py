"""Messages as lines of text: the publish time in milliseconds, and the data as hexadecimal digits."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.schemas import Message
from uldp.transforms import Chunk, Endpoint, Keyed

#: A chunk has so many messages.
_LINES = 1000


@dataclass(frozen=True)
class HexLines(Endpoint):
    """A file of such lines as a source, or a folder with a file for each row of an estimate."""

    path: Path

    def __str__(self) -> str:
        return f"hexlines:{self.path}"

    def check(self, access: str) -> None:
        """Refuse a file that is not there."""
        if access == "READ" and not self.path.is_file():
            raise ValueError(f"{self}: there is no such file")

    def content(self) -> str:
        """Return a digest of the file."""
        return sha256(self.path.read_bytes()).hexdigest()

    def read_whole(self, pipeline: beam.Pipeline) -> PCollection[Chunk]:
        """Read all lines on a worker."""
        paths = pipeline | "Name" >> beam.Create([str(self.path)])
        lines: PCollection[Chunk] = paths | "ReadLines" >> beam.FlatMap(chunks).with_output_types(Chunk)
        return lines

    def publish(self, records: PCollection[Keyed], *, native: bool) -> None:
        """Write each record to the file of its key, again if its bundle is tried again."""
        _ = records | "Write" >> beam.Map(write, str(self.path))


def write(record: Keyed, folder: str) -> None:
    """Write a body to the file of its key."""
    key, body = record
    Path(folder).mkdir(parents=True, exist_ok=True)
    (Path(folder) / f"{sha256(key).hexdigest()}.json").write_bytes(body)


def chunks(path: str) -> Iterator[Chunk]:
    """Yield the messages of a file, named by their lines."""
    lines = Path(path).read_text(encoding="ascii").splitlines()
    for start in range(0, len(lines), _LINES):
        named = enumerate(lines[start : start + _LINES], start)
        yield Chunk([message(line, f"{path}/{number}") for number, line in named])


def message(line: str, source: str) -> Message:
    """Read a line."""
    time, data = line.split()
    return Message(bytes.fromhex(data), int(time), {}, source)


def parse(uri: str, config: Path | None = None) -> HexLines:
    """Read ``hexlines:PATH``."""
    return HexLines(Path(uri.partition(":")[2]))
