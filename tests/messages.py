"""What encoded messages are, by the reference reader of container files."""

import io
from collections.abc import Iterator
from typing import Any, cast

import fastavro

from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.records import Message


def read_back(encoded: EncodedMessages) -> list[Message]:
    """Write a container file and read it."""
    file = io.BytesIO()
    encoded.write(file, {})
    file.seek(0)
    records = cast(Iterator[dict[str, Any]], fastavro.reader(file))
    return [Message(record["data"], record["publish_time"], record["attributes"]) for record in records]
