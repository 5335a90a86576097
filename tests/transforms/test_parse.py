"""The elements of other sources as messages: what is taken of each, and the time that it has."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

import apache_beam as beam
import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Timestamp

from tests.build import START
from uldp.schemas.records import SENDER, Message
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.parse import ParseMessages, parse_message

BODY = b"report"
LATER = START + 1234
SENDERS = {SENDER: "gateway", "trace": "0af7"}
KEPT = {SENDER: "gateway"}


class Header(NamedTuple):
    """As Beam's Kafka source gives it."""

    key: str
    value: bytes | None


class KafkaRecord(NamedTuple):
    """As Beam's Kafka source gives it with metadata, as far as it is read here."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: list[Header] | None = None


RECORD = KafkaRecord("reports", 3, 17, b"key", BODY, START, [Header(SENDER, b"gateway"), Header("trace", None)])
PUBLISHED = datetime.fromtimestamp(START / 1000, UTC)

#: An element with a time of its own, and its message.
STAMPED: dict[str, tuple[Any, Message]] = {
    "pubsub": (PubsubMessage(BODY, SENDERS, "7", PUBLISHED), Message(BODY, START, KEPT, "7")),
    "pubsub without data": (PubsubMessage(None, SENDERS, "7", PUBLISHED), Message(b"", START, KEPT, "7")),
    "pubsub without attributes": (PubsubMessage(BODY, None, None, PUBLISHED), Message(BODY, START)),
    "kafka": (RECORD, Message(BODY, START, KEPT, "reports/3/17")),
    "kafka without headers": (RECORD._replace(headers=None), Message(BODY, START, {}, "reports/3/17")),
    "kafka tombstone": (RECORD._replace(value=None), Message(b"", START, KEPT, "reports/3/17")),
    "row": (beam.Row(data=BODY, publish_time=START), Message(BODY, START)),
    "row of beam's time": (beam.Row(data=BODY, publish_time=Timestamp(micros=START * 1000)), Message(BODY, START)),
    "row of a datetime": (beam.Row(data=BODY, publish_time=PUBLISHED), Message(BODY, START)),
    "row with attributes": (beam.Row(data=BODY, publish_time=START, attributes=SENDERS), Message(BODY, START, KEPT)),
    "message": (Message(BODY, START, {"any": "thing"}, "here"), Message(BODY, START, {"any": "thing"}, "here")),
}
#: An element without one.
BARE: dict[str, Any] = {
    "bytes": BODY,
    "kafka": (b"key", BODY),
    "kafka without a key": (None, BODY),
    "row": beam.Row(data=BODY),
    "row of a value": beam.Row(value=BODY),
    "pubsub": PubsubMessage(BODY, {}),
}


@pytest.mark.parametrize("name", STAMPED)
def test_an_element_without_a_time_has_its_own(name: str) -> None:
    element, message = STAMPED[name]
    assert parse_message(element) == message


@pytest.mark.parametrize("name", STAMPED)
def test_the_time_of_an_element_prevails_because_the_watermark_follows_it(name: str) -> None:
    element, message = STAMPED[name]
    expected = message if name == "message" else message._replace(publish_time=LATER)
    assert parse_message(element, LATER) == expected


@pytest.mark.parametrize("name", BARE)
def test_an_element_without_a_time_of_its_own_has_that_of_the_element(name: str) -> None:
    assert parse_message(BARE[name], LATER) == Message(BODY, LATER)


def test_chunks_pass() -> None:
    chunks = beam.Pipeline("FnApiRunner") | beam.Create([Chunk([Message(BODY, START)])])
    assert (chunks | ParseMessages()) is chunks
    assert chunks.element_type is Chunk


@pytest.mark.parametrize("own", [START / 1000, datetime(2026, 1, 1), "2026-01-01"], ids=["float", "naive", "text"])
def test_a_time_in_another_form_is_refused(own: Any) -> None:
    with pytest.raises(TypeError, match=r"^publish_time is a .*, not an int of milliseconds"):
        parse_message(beam.Row(data=BODY, publish_time=own))


def test_each_kind_in_a_pipeline() -> None:
    given = [BODY, (b"key", BODY), PubsubMessage(BODY, {}), beam.Row(data=BODY), Message(BODY, START)]
    with beam.Pipeline("FnApiRunner") as pipeline:
        stamped = [
            pipeline | f"{number}" >> beam.Create([element]) | f"At{number}" >> beam.Map(TimestampedValue, START / 1000)
            for number, element in enumerate(given)
        ]
        assert_that(stamped | beam.Flatten() | ParseMessages(), equal_to([Message(BODY, START)] * 5))
