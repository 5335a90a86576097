"""Containers as archivers of the field write them, from their published schemas."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import fastavro

from uldp.schemas.records import Message


def _record(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}


def _time(unit: str) -> dict[str, str]:
    return {"type": "long", "logicalType": unit}


def _half_days(milliseconds: int) -> str:
    """Write a time as .NET does for its invariant culture of old: without leading zeros, in half days."""
    time = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return (
        f"{time.month}/{time.day}/{time.year} {time.hour % 12 or 12}:{time:%M:%S} {'PM' if time.hour >= 12 else 'AM'}"
    )


_STRINGS = {"type": "map", "values": "string"}
_JAVA_STRINGS = {"type": "map", "values": {"type": "string", "avro.java.string": "String"}}
_AMQP = {"type": "map", "values": ["long", "double", "string", "bytes"]}


@dataclass(frozen=True)
class Archiver:
    """A writer of archives.

    Attributes:
        schema: The schema of its records.
        record: Makes a record of a message.
        dated: Whether its records have times.
        attributes: Whether they have attributes.
    """

    schema: Any
    record: Callable[[Message], Any]
    dated: bool = True
    attributes: bool = True

    def write(self, messages: Sequence[Message], codec: str = "null") -> bytes:
        """Return a container of messages."""
        file = io.BytesIO()
        fastavro.writer(file, fastavro.parse_schema(self.schema), map(self.record, messages), codec=codec)
        return file.getvalue()


def _message(unit: str, scale: int) -> Archiver:
    """message.avsc with a declared unit, in times of which ``scale`` are a thousandth of a microsecond each."""
    schema = _record("uldp.Message", data="bytes", attributes=_STRINGS, publish_time=_time(unit))
    return Archiver(schema, lambda message: message.to_avro() | {"publish_time": message.publish_time * scale})


ARCHIVERS: Mapping[str, Archiver] = {
    f"a declared {clock}timestamp-{unit}": _message(f"{clock}timestamp-{unit}", scale)
    for clock in ("", "local-")
    for unit, scale in (("millis", 1), ("micros", 1_000), ("nanos", 1_000_000))
} | {
    "Pub/Sub to Cloud Storage": Archiver(
        _record(
            "com.google.pubsub.PubsubMessageWithMetadata",
            subscription_name="string",
            message_id="string",
            publish_time=_time("timestamp-micros"),
            attributes=_STRINGS,
            data="bytes",
        ),
        lambda message: {
            "subscription_name": "projects/p/subscriptions/s",
            "message_id": "17",
            "publish_time": message.publish_time * 1000 + 999,
            "attributes": message.attributes,
            "data": message.data,
        },
    ),
    "Pub/Sub to Cloud Storage with ordering keys": Archiver(
        _record(
            "com.google.pubsub.PubsubMessageWithMetadata",
            ordering_key="string",
            data="bytes",
            publish_time=_time("timestamp-micros"),
            attributes=_STRINGS,
        ),
        lambda message: {
            "ordering_key": "k",
            "publish_time": message.publish_time * 1000,
            "attributes": message.attributes,
            "data": message.data,
        },
    ),
    "Pub/Sub to Cloud Storage without metadata": Archiver(
        _record("com.google.pubsub.PubsubMessage", data="bytes"),
        lambda message: {"data": message.data},
        dated=False,
        attributes=False,
    ),
    "Dataflow's Pub/Sub to Avro": Archiver(
        _record(
            "com.google.cloud.teleport.avro.AvroPubsubMessageRecord",
            message={"type": "bytes", "java-class": "[B"},
            attributes=_JAVA_STRINGS,
            timestamp="long",
        ),
        lambda message: {"message": message.data, "attributes": message.attributes, "timestamp": message.publish_time},
    ),
    "Event Hubs Capture": Archiver(
        _record(
            "Microsoft.ServiceBus.Messaging.EventData",
            SequenceNumber="long",
            Offset="string",
            EnqueuedTimeUtc="string",
            SystemProperties=_AMQP,
            Properties={"type": "map", "values": ["long", "double", "string", "bytes", "null"]},
            Body=["null", "bytes"],
        ),
        lambda message: {
            "SequenceNumber": -(2**63),
            "Offset": "1099511627776",
            "EnqueuedTimeUtc": _half_days(message.publish_time),
            "SystemProperties": {"x-opt-kafka-key": b"k", "x-opt-enqueued-time": 7, "iothub": 0.5},
            "Properties": {**message.attributes, "sent": None},
            "Body": message.data,
        },
    ),
    "IoT Hub": Archiver(
        _record(
            "Microsoft.Azure.Devices.Message",
            EnqueuedTimeUtc="string",
            Properties=_STRINGS,
            SystemProperties=_STRINGS,
            Body=["null", "bytes"],
        ),
        lambda message: {
            "EnqueuedTimeUtc": f"{datetime.fromtimestamp(message.publish_time / 1000, UTC):%Y-%m-%dT%H:%M:%S}.0000000Z",
            "Properties": message.attributes,
            "SystemProperties": {"connectionDeviceId": "d"},
            "Body": message.data,
        },
    ),
    "Kafka Connect": Archiver(["null", "bytes"], lambda message: message.data, dated=False, attributes=False),
    "Kafka Connect, required": Archiver("bytes", lambda message: message.data, dated=False, attributes=False),
}
