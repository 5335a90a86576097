"""The records on the wire, and the messages that carry them, each with its Avro form.

Times are integers: milliseconds since 1970-01-01 UTC.
"""

import hashlib
import operator
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate, chain
from typing import Any, NamedTuple, Self, SupportsIndex, cast

from uldp.schemas.framing import encode_object
from uldp.schemas.places import Runs, numbered, size, united, without


def iso(milliseconds: int) -> str:
    """Write a time as ISO 8601 in UTC, with milliseconds only if it is not a whole second.

    >>> iso(1767258000000)
    '2026-01-01T09:00:00Z'
    """
    moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
    return moment.isoformat(timespec="milliseconds" if milliseconds % 1000 else "seconds").replace("+00:00", "Z")


def as_milliseconds(time: object, name: str) -> int:
    """Return a time that must be in whole milliseconds.

    Args:
        time: The time.
        name: What it is called where it was given.

    Raises:
        TypeError: if it is not an integer, as a float of seconds or a datetime.
    """
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
        return encode_object("report", asdict(self))


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
        """Return the message that a gateway or shuffler sends.

        Raises:
            ValueError: if not exactly one of ``symbols`` and ``bits`` is given.
        """
        if (self.symbols is None) == (self.bits is None):
            raise ValueError("a batch has either symbols or bits")
        payload = (
            ("uldp.SymbolColumn", {"symbols": self.symbols})
            if self.symbols is not None
            else ("uldp.BitsColumn", {"bits": self.bits})
        )
        return encode_object(
            "report_batch",
            {
                "collection": self.collection,
                "version": self.version,
                "report_ids": self.report_ids,
                "event_times": self.event_times,
                "payload": payload,
            },
        )


#: The attribute of a replayed message that holds the number of the attempt.
ATTEMPT = "uldp-attempt"
#: The attribute in which a transport may name the sender of a message, by a key that the transport chooses.
SENDER = "uldp-sender"
#: A plain dict and not a read-only view, because Beam must pickle it if a user's own steps pass messages on.
NO_ATTRIBUTES: Mapping[str, str] = {}


def as_body(data: object) -> bytes:
    """Return the body of a message.

    Raises:
        TypeError: if it is not bytes.
    """
    if not isinstance(data, bytes):
        raise TypeError(
            f"the data of a message is a {type(data).__name__}, not bytes: give the bytes that a device sent, as"
            " Device.report or Report.encode returns them"
        )
    return data


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
            "attributes": dict(self.attributes or NO_ATTRIBUTES),
            "publish_time": published,
        }


@dataclass(frozen=True, slots=True)
class Rejected:
    """Reports of one or several messages that could not be counted for one reason; see ``rejected.avsc``.

    Attributes:
        runs: The numbers of several messages, whose positions differ in them alone; empty for one message.
    """

    stage: str
    reason: str
    detail: str
    data: bytes
    attributes: Mapping[str, str]
    publish_time: int
    source: str
    attempt: int
    software: str
    reports: int = 1
    runs: Runs = ()
    kept: bool = True

    @property
    def messages(self) -> int:
        """Number of the messages."""
        return size(self.runs) if self.runs else 1

    @property
    def place(self) -> tuple[str, Runs]:
        """What the messages are numbered in, and their numbers; no runs if they are not numbered."""
        found = numbered(self.source)
        if found is None:
            return self.source, ()
        return found[0], self.runs or ((found[1], found[1] + 1),)

    def at(self, runs: Runs) -> Self:
        """Return the part of these messages that has some of the numbers; ``runs`` is not empty."""
        prefix, of_all = self.place
        n = size(runs)
        more = runs if n > 1 else ()
        reports = self.reports // size(of_all) * n
        return replace(self, source=f"{prefix}{runs[0][0]}", runs=more, reports=reports)

    def to_avro(self) -> dict[str, Any]:
        """Return the value that ``rejected.avsc`` describes."""
        # asdict would copy deeply, and it cannot copy a read-only mapping. A sender may send thousands of these.
        value = {name: getattr(self, name) for name in _FIELDS_OF_REJECTED} | {"attributes": dict(self.attributes)}
        if not self.runs:
            return value | {"runs": []}
        ends = [self.runs[0][0], *(end for _, end in self.runs)]
        gaps = ((first - before, end - first) for before, (first, end) in zip(ends, self.runs, strict=False))
        return value | {"runs": [*chain.from_iterable(gaps)][1:]}

    @classmethod
    def from_avro(cls, value: Mapping[str, Any]) -> Self:
        """Read a value that ``to_avro`` returned.

        Raises:
            ValueError: if its runs are none.
        """
        written = value["runs"]
        if not written:
            return cls(**{**value, "runs": ()})
        found = numbered(value["source"])
        if found is None or len(written) % 2 == 0 or min(written) < 1:
            raise ValueError("these are no runs of messages")
        bounds = [*accumulate([found[1], *written])]
        record = cls(**{**value, "runs": tuple(zip(bounds[::2], bounds[1::2], strict=True))})
        if record.reports % record.messages:
            raise ValueError("the messages have different numbers of reports")
        return record


_FIELDS_OF_REJECTED = tuple(each.name for each in fields(Rejected))


def joined_rejected(records: Iterable[Rejected]) -> list[Rejected]:
    """Join records of equal data, from one source and for one reason. Each message is in one of them.

    The first of them gives the detail and the publish time.
    """
    members: dict[tuple[object, ...], list[Rejected]] = defaultdict(list)
    numbers: dict[tuple[object, ...], list[tuple[int, int]]] = defaultdict(list)
    alone = []
    for record in records:
        prefix, runs = record.place
        if not runs:
            alone.append(record)
            continue
        attributes = tuple(sorted(record.attributes.items())) if record.attributes else ()
        each = record.reports // record.messages
        key = prefix, record.reason, record.kept, record.data, attributes, each, record.stage, record.software
        numbers[key] += runs
        members[key].append(record)
    return alone + [record for key, of_key in members.items() for record in _of_all(of_key, numbers[key])]


def _of_all(records: Sequence[Rejected], numbers: Iterable[tuple[int, int]]) -> Sequence[Rejected]:
    """Return one record for several; or these, if their source gives several messages one place."""
    if len(records) == 1:
        return records
    messages = sum(record.messages for record in records)
    runs = united(numbers)
    if size(runs) < messages:
        return records
    (prefix, _), first = records[0].place, records[0]
    each = first.reports // first.messages
    return [replace(first, source=f"{prefix}{runs[0][0]}", runs=runs, reports=each * messages)]


def each_once(records: Iterable[Rejected]) -> Iterator[Rejected]:
    """Leave out what earlier records hold of the same messages for the same reason.

    A runner that tries a bundle again may cut it otherwise, and so write a record in two files. Messages without a
    number stay: nothing tells them apart.
    """
    seen: dict[tuple[str, str, bytes], Runs] = {}
    counted: list[Rejected] = []
    kept: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for record in records:
        prefix, runs = record.place
        if not runs:
            yield record
        elif not record.kept:
            counted.append(record)
        else:
            key = prefix, record.reason, hashlib.sha256(record.data).digest()[:16]
            if new := without(runs, seen.get(key, ())):
                seen[key] = united((*seen.get(key, ()), *new))
                kept[prefix, record.reason] += new
                yield record if new == runs else record.at(new)
    united_kept = {key: united(runs) for key, runs in kept.items()}
    for record in counted:
        prefix, runs = record.place
        before = united_kept.get((prefix, record.reason), ())
        if new := without(runs, before):
            united_kept[prefix, record.reason] = united((*before, *new))
            yield record if new == runs else record.at(new)


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
        """Read a value that ``to_avro`` returned.

        Raises:
            ValueError: if it names no message.
        """
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


def count_reasons(rejected: Iterable[Rejected]) -> Counter[str]:
    """Return the number of rejected reports by reason."""
    counts: Counter[str] = Counter()
    for record in rejected:
        counts[record.reason] += record.reports
    return counts
