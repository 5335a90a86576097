"""Messages that a source fetched together, as one element: a runner's cost for an element is paid once for many.

Importing this module registers its coder, and that of messages.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import apache_beam as beam
import fastavro
from apache_beam.coders import Coder
from apache_beam.coders.typecoders import registry
from apache_beam.pvalue import PCollection
from apache_beam.utils.windowed_value import WindowedValue

import transforms.coders  # noqa: F401 (registers the coder of messages)
from schemas.framing import Schema, load_schema
from schemas.records import Message
from transforms.windows import at_time


@dataclass(frozen=True, slots=True)
class Chunk:
    """Messages in the order in which they were fetched."""

    messages: Sequence[Message]

    def __len__(self) -> int:
        return len(self.messages)


@cache
def _schema() -> Schema:
    """An array of messages as on disk, each with its position in the source behind it."""
    message = load_schema("message")
    record = {
        "type": "record",
        "name": "uldp.PositionedMessage",
        "fields": [*message["fields"], {"name": "source", "type": "string"}],
    }
    return cast(Schema, fastavro.parse_schema({"type": "array", "items": record}))


class ChunkCoder(Coder):
    """An Avro array, without a header: both ends are this job."""

    def encode(self, value: Chunk) -> bytes:
        """Write all messages."""
        out = io.BytesIO()
        records = [{**message.to_avro(), "source": message.source} for message in value.messages]
        # An array is a record to the writer, whatever its annotation says.
        fastavro.schemaless_writer(out, _schema(), cast(Any, records))
        return out.getvalue()

    def decode(self, encoded: bytes) -> Chunk:
        """Read them back.

        Raises:
            ValueError: if the bytes are no chunk, or something follows it.
        """
        body = io.BytesIO(encoded)
        try:
            records = cast(list[dict[str, Any]], fastavro.schemaless_reader(body, _schema(), None))
            chunk = Chunk([Message(**record) for record in records])
        except Exception as error:  # the reader raises what its C code happens to meet in other bytes
            raise ValueError(f"not a chunk of messages: {error!r}") from error
        if left := len(encoded) - body.tell():
            raise ValueError(f"not a chunk of messages: {left} bytes follow the last")
        return chunk

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


registry.register_coder(Chunk, ChunkCoder)


def unpack(chunk: Chunk) -> Iterator[WindowedValue]:
    """Give each message its publish time as element time."""
    time, timed = 0, at_time(0, None)
    for message in chunk.messages:
        if message.publish_time != time:
            time = message.publish_time
            timed = at_time(time, None)
        yield timed.with_value(message)  # a twentieth of the cost; neighbours often share a millisecond


@dataclass
class UnpackChunks(beam.PTransform[PCollection[Chunk], PCollection[Message]]):
    """Turn chunks into messages whose element time is their publish time."""

    def expand(self, chunks: PCollection[Chunk]) -> PCollection[Message]:
        """One step."""
        messages: PCollection[Message] = chunks | "Unpack" >> beam.FlatMap(unpack).with_output_types(Message)
        return messages
