"""Write the messages of a local stream as other systems would; docs/archives.md reads them.

python examples/programs/other_framings.py connect stream connected
python examples/programs/other_framings.py registry stream registered
"""

import sys
from pathlib import Path

import fastavro

from uldp.schemas.framing import HEADER_SIZE, header, load_schema
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import read_messages

#: The ids that a schema registry has given to our schemas.
IDS = {header(load_schema("report")): 7, header(load_schema("report_batch")): 8}


def as_kafka_connect(stream: Path, to: Path) -> None:
    """Write files of bytes, as Kafka Connect does with ``ByteArrayConverter`` and ``AvroFormat``."""
    to.mkdir()
    for segment in stream.glob("*.avro"):
        with (to / segment.name).open("wb") as file:
            fastavro.writer(file, ["null", "bytes"], [message.data for message in read_messages(segment)])


def as_registry_serializer(stream: Path, to: Path) -> None:
    """Write a stream whose messages have a zero byte and the id of a schema in place of our header."""
    registered = LocalStream.create(to, simulated_clock=True)
    for segment in sorted(stream.glob("*.avro")):
        messages = list(read_messages(segment))
        for row, message in enumerate(messages):
            if (number := IDS.get(message.data[:HEADER_SIZE])) is not None:
                data = b"\0" + number.to_bytes(4, "big") + message.data[HEADER_SIZE:]
                messages[row] = message._replace(data=data)
        registered.append(messages)
    registered.close()


if __name__ == "__main__":
    kind, source, target = sys.argv[1:]
    {"connect": as_kafka_connect, "registry": as_registry_serializer}[kind](Path(source), Path(target))
