"""The records on the wire, and the messages that carry them, each with its Avro form.

Times are integers: milliseconds since 1970-01-01 UTC.
"""

import operator
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Self, SupportsIndex, cast

from uldp.schemas.framing import encode_object


def iso(milliseconds: int) -> str:
    """Write a time as ISO 8601 in UTC, with milliseconds only if it is not a whole second.

    >>> iso(1767258000000)
    '2026-01-01T09:00:00Z'
    """
    moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
    return moment.isoformat(timespec="milliseconds" if milliseconds % 1000 else "seconds").replace("+00:00", "Z")


def as_milliseconds(time: object, name: str) -> int:
    """Return a time in whole milliseconds; TypeError if it is no integer, as a float of seconds or a datetime."""
    try:
        return operator.index(cast(SupportsIndex, time))
    except TypeError:
        raise TypeError(
            f"{name} is a {type(time).__name__}, not an int of milliseconds since 1970 UTC: write"
            " int(time.time() * 1000), or int(moment.timestamp() * 1000) of a datetime with a time zone"
        ) from None


@dataclass(frozen=True, slots=True)
class Report:
    """One obfuscated value from one device: a symbol of Z (int) or packed bits (bytes)."""

    collection: str
    version: int
    report_id: bytes
    event_time: int
    payload: int | bytes

    def encode(self) -> bytes:
        """Return the message that a device sends."""
        return encode_object("report", {name: getattr(self, name) for name in self.__slots__})


@dataclass(frozen=True, slots=True)
class ReportBatch:
    """Reports of one collection and version as packed columns; see ``report_batch.avsc`` for their layout."""

    collection: str
    version: int
    report_ids: bytes
    event_times: bytes
    symbols: bytes | None = None
    bits: bytes | None = None

    def encode(self) -> bytes:
        """Return the message that a gateway or shuffler sends; ValueError unless it has either symbols or bits."""
        if (self.symbols is None) == (self.bits is None):
            raise ValueError("a batch has either symbols or bits")
        kind, column = ("SymbolColumn", "symbols") if self.bits is None else ("BitsColumn", "bits")
        payload = f"uldp.{kind}", {column: getattr(self, column)}
        fields = {name: getattr(self, name) for name in self.__slots__}  # asdict copies them, in twice the time
        return encode_object("report_batch", fields | {"payload": payload})


#: The attribute of a replayed message that holds the number of the attempt.
ATTEMPT = "uldp-attempt"
#: The attribute in which a transport may name the sender of a message, by a key that the transport chooses.
SENDER = "uldp-sender"
#: A plain dict and not a read-only view, because Beam must pickle it if a user's own steps pass messages on.
NO_ATTRIBUTES: Mapping[str, str] = {}


def as_body(data: object) -> bytes:
    """Return the body of a message; TypeError if it is not bytes."""
    if not isinstance(data, bytes):
        raise TypeError(
            f"the data of a message is a {type(data).__name__}, not bytes: give the bytes that a device sent, as"
            " Device.report or Report.encode returns them"
        )
    return data


def as_attributes(attributes: Mapping[str, str]) -> Mapping[str, str]:
    """Return the attributes of a message; TypeError if a name or a value is no text."""
    for each in (*attributes, *attributes.values()):
        if not isinstance(each, str):
            raise TypeError(
                f"an attribute of a message has a {type(each).__name__}, not a str: write its name and value as text"
            )
    return attributes


class Message(NamedTuple):
    """One message of a stream. A tuple, because streams create a million of them per second.

    Attributes:
        data: The body, as untrusted bytes.
        publish_time: The time at which the stream accepted the message, by the stream's clock.
        attributes: The metadata that the transport carried beside the body.
        source: The position in the source, for readers and for replay; not part of the message.
    """

    data: bytes
    publish_time: int
    attributes: Mapping[str, str] = NO_ATTRIBUTES
    source: str = ""

    def to_avro(self) -> dict[str, Any]:
        """Return the value that ``message.avsc`` describes."""
        published = as_milliseconds(self.publish_time, "publish_time")
        return {
            "data": as_body(self.data),
            "attributes": dict(as_attributes(self.attributes or NO_ATTRIBUTES)),
            "publish_time": published,
        }


@dataclass(frozen=True, slots=True)
class Missing:
    """Messages that existed, and that were lost before a job could read them; see ``missing.avsc`` for each field.

    A restart may find a loss again, longer or as a part of another one; ``missing_messages`` counts each message once.
    """

    source: str
    first: int
    last: int
    after: int
    before: int

    @property
    def count(self) -> int:
        """Number of these messages, at most: of Kafka, markers of transactions have offsets too."""
        return self.last - self.first + 1

    def to_avro(self) -> dict[str, Any]:
        """Return the value that ``missing.avsc`` describes."""
        return asdict(self)

    @classmethod
    def from_avro(cls, value: Mapping[str, Any]) -> Self:
        """Read a value that ``to_avro`` returned; ValueError if it names no message."""
        missing = cls(**value)
        if missing.count < 1:
            raise ValueError(f"the last of the missing messages, {missing.last}, is before the first, {missing.first}")
        return missing


def missing_messages(records: Iterable[Missing]) -> int:
    """Count missing messages, each once.

    >>> missing_messages([Missing("t/0", 5, 9, 0, 1), Missing("t/0", 0, 6, 0, 1), Missing("t/1", 5, 5, 0, 1)])
    11
    """
    total, source, end = 0, "", 0
    for record in sorted(records, key=lambda each: (each.source, each.first)):
        if record.source != source:
            source, end = record.source, record.first
        total += max(record.last + 1 - max(record.first, end), 0)
        end = max(end, record.last + 1)
    return total


#: The attributes that have a meaning here. The record of each late or rejected report holds the attributes of its
#: message, and a batch has thousands of reports: 330 KB of attributes in one message once became 501 MB.
KNOWN_ATTRIBUTES = (ATTEMPT, SENDER)
#: Bytes that are read of a value: enough for the name of a device or a digest in text. Sender keys that begin with the
#: same 256 bytes count as one sender.
MAX_VALUE_BYTES = 256


def known_attributes(attributes: Mapping[str, str]) -> Mapping[str, str]:
    """Return the known attributes of a message, with bounded values. The work does not grow with their number.

    >>> known_attributes({"uldp-sender": "gateway", "trace": "0af7"})
    {'uldp-sender': 'gateway'}
    """
    known = {name: _bounded(attributes[name]) for name in KNOWN_ATTRIBUTES if name in attributes}
    return known or NO_ATTRIBUTES


def _bounded(value: str) -> str:
    """Cut a value behind a whole character."""
    if 4 * len(value) <= MAX_VALUE_BYTES:  # as usual: no character has more bytes
        return value
    return value[:MAX_VALUE_BYTES].encode("utf-8", "surrogatepass")[:MAX_VALUE_BYTES].decode("utf-8", "ignore")
