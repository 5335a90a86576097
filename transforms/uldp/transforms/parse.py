"""What the sources of others give, as messages: bytes, messages of Pub/Sub, records of Kafka, and rows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.collector.collections import YEAR_9000
from uldp.schemas.records import NO_ATTRIBUTES, Message, as_body, as_milliseconds, known_attributes
from uldp.transforms.internals import Given, Timestamp
from uldp.transforms.io.chunks import Chunk

#: The remedy for input of another type.
NOT_MESSAGES = (
    "Aggregate takes uldp.schemas.Message, not {}; put uldp.transforms.ParseMessages() before it, which takes bytes,"
    " PubsubMessage, records of Kafka, and rows with data"
)
_NOT_PARSED = (
    "ParseMessages takes bytes, PubsubMessage, (key, value) and rows of Kafka, and beam.Row(data=...), not {}; map it"
    " to one of these, such as the bytes that a device sent"
)
_NO_TIME = (
    "a message has no publish time, by which lateness is judged: give elements the time at which the stream accepted"
    " them, as beam.window.TimestampedValue(element, seconds), or rows a publish_time"
)


@dataclass
class ParseMessages(beam.PTransform[PCollection[Any], PCollection[Any]]):
    """Turn the elements of a source into messages for ``Aggregate``; see ``parse_message``.

    A key of Kafka is dropped. The output has one type, because Beam has no coder for a union, and would pickle it.
    """

    def expand(self, elements: PCollection[Any]) -> PCollection[Any]:
        """Parse each element; messages pass, and so does a collection of chunks, which sources of this project give."""
        if elements.element_type is Chunk:
            return elements
        parse = beam.Map(_parse).with_input_types(Any).with_output_types(Message)
        messages: PCollection[Message] = elements | "ParseMessage" >> parse
        return messages


def parse_message(element: object, element_time: int | None = None) -> Message:
    """Return an element of a source as a message.

    The publish time is the time of the element, because Beam's watermark follows that. An element without one, as
    ``beam.Create`` and files give it, has its own: ``publish_time`` of a row or of a message of Pub/Sub, ``timestamp``
    of a record of Kafka.

    >>> parse_message((b"key", b"report"), 1767258000000)
    Message(data=b'report', publish_time=1767258000000, attributes={}, source='')

    Args:
        element: Bytes; ``PubsubMessage``; what Beam's ``ReadFromKafka`` gives, pairs of key and value, or rows with
            metadata; a row with ``data``, and ``publish_time`` and ``attributes`` if it has them; or a message.
            TypeError if it is anything else, or a field has the wrong type; ValueError without a publish time.
        element_time: The time of the element in milliseconds; None if it has none.
    """
    match element:
        case Message():
            return element
        case bytes():
            return Message(element, _published(element_time, None))
        case (_, value) if type(element) is tuple:
            return Message(as_body(value or b""), _published(element_time, None))
    data = getattr(element, "data", getattr(element, "value", element))
    if data is element:
        raise TypeError(_NOT_PARSED.format(type(element).__name__))
    own = getattr(element, "publish_time", getattr(element, "timestamp", None))
    attributes = getattr(element, "attributes", None) or _headers(getattr(element, "headers", None) or ())
    return Message(as_body(data or b""), _published(element_time, own), known_attributes(attributes), _source(element))


def _parse(element: Any, timestamp: Given = beam.DoFn.TimestampParam) -> Message:
    milliseconds = timestamp.micros // 1000
    # Beam gives elements that have no time its first, and those of one group of all time its last.
    return parse_message(element, milliseconds if 0 <= milliseconds < YEAR_9000 else None)


def _published(element_time: int | None, own: object) -> int:
    match own if element_time is None else element_time:
        case None:
            raise ValueError(_NO_TIME)
        case Timestamp() as moment:
            return int(moment.micros) // 1000
        case datetime() as moment if moment.tzinfo is not None:
            return int(moment.timestamp() * 1000)
        case time:
            return as_milliseconds(time, "publish_time")


def _headers(headers: Iterable[Any]) -> Mapping[str, str]:
    """Return the headers of a record of Kafka, as rows have them."""
    found = {header.key: (header.value or b"").decode("utf-8", "replace") for header in headers}
    return found or NO_ATTRIBUTES


def _source(element: object) -> str:
    """Return the position that an element has in its source."""
    if (offset := getattr(element, "offset", None)) is not None:
        return f"{getattr(element, 'topic', '')}/{getattr(element, 'partition', '')}/{offset}"
    return str(getattr(element, "message_id", None) or "")
