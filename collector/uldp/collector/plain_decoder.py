"""Decode messages that fit no layout of a served collection: one by one, or together if they are alike."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from uldp.collector.collections import ServedCollection
from uldp.schemas.arrays import ReportIds, Rows, Times
from uldp.schemas.codec.batched import BatchViews
from uldp.schemas.codec.columnar import MIN_ROWS, FastRows, Layout, decode_columns, fields_at, report_schema
from uldp.schemas.codec.lengths import misfits
from uldp.schemas.codec.packed import Bodies
from uldp.schemas.errors import UldpError
from uldp.schemas.foreign_framing import registry_beginning
from uldp.schemas.framing import (
    HEADER_SIZE,
    MAGIC,
    MalformedBodyError,
    NotSingleObjectError,
    RegistryFramingError,
    TruncatedBodyError,
    UnknownSchemaError,
    report_store,
)
from uldp.schemas.reasons import Reason
from uldp.schemas.specs.collection import CollectionKey

#: Pub/Sub's limit for a message. The decoder rejects a longer message without decoding it.
MAX_MESSAGE_BYTES = 10_000_000
#: So many kinds of messages that cannot be counted are looked for among the messages that are left.
MOST_SHAPES = 8
_FRAMING_REASONS: dict[type[ValueError], Reason] = {
    NotSingleObjectError: Reason.NOT_AVRO,
    RegistryFramingError: Reason.REGISTRY_FRAMING,
    UnknownSchemaError: Reason.UNKNOWN_SCHEMA,
    TruncatedBodyError: Reason.TRUNCATED,
    MalformedBodyError: Reason.MALFORMED,
}
#: The reason why the collection cannot count a payload, and a detail for the reader of the rejected report.
PayloadFault = tuple[Reason, str]
#: A collection, and what is wrong with payloads for it.
Group = tuple[CollectionKey, PayloadFault | None]
#: The index of a message, and the record that was decoded from it.
Record = tuple[int, dict[str, Any]]


class Unparsed(NamedTuple):
    """Messages that are rejected as a whole for one reason."""

    origins: Rows  # shape (n,): indices of the messages, ascending
    reason: Reason
    served: ServedCollection | None = None  # the collection that they name, if that could be read
    reports: int = 1  # how many reports each holds: those of a batch of an unknown collection or version, and else one


class Faulty(NamedTuple):
    """Reports of a collection whose payloads do not fit it, by the ascending indices of their messages."""

    served: ServedCollection
    fault: PayloadFault
    origins: Rows
    report_ids: ReportIds
    event_times: Times


@dataclass(slots=True)
class Plain:
    """What was decoded: records of reports and batches, further reports as columns, and messages of none."""

    singles: dict[Group, list[Record]] = field(default_factory=lambda: defaultdict(list))
    batches: dict[Group, list[Record]] = field(default_factory=lambda: defaultdict(list))
    faulty: list[Faulty] = field(default_factory=list)
    unparsed: list[Unparsed] = field(default_factory=list)


class _Refusal(NamedTuple):
    """Why a message is rejected as a whole; the last two as of ``Unparsed``."""

    reason: Reason
    detail: str
    served: ServedCollection | None = None
    reports: int = 1


class _RefusedError(UldpError):
    """A message whose reports cannot be separated; its arguments are those of ``_Refusal``."""


class _Found(NamedTuple):
    """What a message is: a single report or a batch, of a served collection or not; or nothing that was decoded."""

    record: dict[str, Any] | None
    single: bool
    key: CollectionKey | None = None
    fault: PayloadFault | None = None
    refusal: _Refusal | None = None

    def shape(self, data: bytes) -> Layout | bytes | None:
        """Return what all messages share that are wrong for one reason: a layout, or a beginning; else None."""
        if self.refusal is not None and self.refusal.reason is Reason.REGISTRY_FRAMING:
            return registry_beginning(data)
        if self.record is None or not self.single or not (self.refusal or self.fault) or self.record["version"] < 0:
            return None
        payload = self.record["payload"]
        if payload == b"":  # no layout of a mechanism
            return None
        width = len(payload) if isinstance(payload, bytes) else None
        return Layout.of(report_schema(), self.record["collection"], self.record["version"], width)


class _Refused:
    """Messages that are rejected as a whole, those alike together; a sender can make each detail another."""

    def __init__(self) -> None:
        self._alike: dict[tuple[Reason, int, int], tuple[_Refusal, list[Rows]]] = {}

    def add(self, found: _Found, origins: Rows) -> None:
        """Add messages of which one was found to be such."""
        refusal = found.refusal
        assert refusal is not None
        alike = refusal.reason, id(refusal.served), refusal.reports
        self._alike.setdefault(alike, (refusal, []))[1].append(origins)

    def unparsed(self) -> Iterator[Unparsed]:
        for refusal, parts in self._alike.values():
            yield Unparsed(np.sort(np.concatenate(parts)), refusal.reason, refusal.served, refusal.reports)


class PlainDecoder:
    """Decodes messages by fastavro, and all together that are like a single report that cannot be counted."""

    def __init__(self, served: Mapping[CollectionKey, ServedCollection], layouts: Sequence[Layout]) -> None:
        self._served = served
        self._layouts = layouts
        self._collections = {collection for collection, _ in served}
        self._batches = BatchViews.of(served)
        self._store = report_store()

    def decode(self, messages: Bodies, rows: Rows) -> Plain:
        """Decode the messages in ``rows``, which are ascending; no input raises."""
        out = Plain()
        refused = _Refused()
        rows, strange = self._by_header(messages, rows)
        cut, overlong = misfits(messages, rows, self._layouts)
        for part in (*strange, cut, overlong):
            if len(part):
                refused.add(self._find(messages[int(part[0])]), part)
        left = np.zeros(len(messages), dtype=np.bool_)
        left[rows] = True
        left[cut] = left[overlong] = False
        # A sender can send one message a million times, and to find what is wrong takes long.
        wrong: dict[bytes, _Found] = {}
        tried: set[Layout | bytes] = set()
        for origin in rows.tolist():
            if not left[origin]:
                continue
            left[origin] = False
            data = messages[origin]
            found = wrong.get(data) or self._find(data)
            if found.refusal is not None:
                wrong[data] = found
                refused.add(found, np.array([origin]))
            else:
                assert found.key is not None
                assert found.record is not None
                groups = out.singles if found.single else out.batches
                groups[found.key, found.fault].append((origin, found.record))
            shape = found.shape(data)
            if shape is not None and shape not in tried and len(tried) < MOST_SHAPES:
                tried.add(shape)
                rest = np.flatnonzero(left)
                taken, faulty = _alike(messages, rest, shape)
                left[rest[taken]] = False
                if found.refusal is not None:
                    refused.add(found, rest[taken])
                elif found.key is not None and found.fault is not None and faulty is not None:
                    served = self._served[found.key]
                    ids, times = faulty.report_ids, faulty.event_times
                    out.faulty.append(Faulty(served, found.fault, rest[taken], ids, times))
        out.unparsed += refused.unparsed()
        return out

    def detail(self, data: bytes) -> str:
        """Return what is wrong with a message whose reports cannot be separated; empty if nothing is."""
        refusal = self._find(data).refusal
        return "" if refusal is None else refusal.detail

    def _by_header(self, messages: Bodies, rows: Rows) -> tuple[Rows, list[Rows]]:
        """Separate messages with a known header, or a registry's, from others, these by reason."""
        if len(rows) < MIN_ROWS:
            return rows, []
        starts = messages.starts[rows]
        lengths = messages.ends[rows] - starts
        headers = fields_at(messages.buffer + bytes(HEADER_SIZE), starts, HEADER_SIZE)
        bytes_ = headers.view(np.uint8).reshape(-1, HEADER_SIZE)
        large = lengths > MAX_MESSAGE_BYTES
        magic = (lengths >= len(MAGIC)) & (bytes_[:, : len(MAGIC)] == np.frombuffer(MAGIC, np.uint8)).all(axis=1)
        of_registry = (lengths > 0) & (bytes_[:, 0] == 0)
        whole = magic & (lengths >= HEADER_SIZE)
        known = whole & np.logical_or.reduce([headers == np.void(header) for header in self._store.writers])
        others = (~magic & ~of_registry & ~large, magic & ~whole, whole & ~known & ~large)
        return rows[known | of_registry | large], [rows[part] for part in others]

    def _find(self, data: bytes) -> _Found:
        record, single = None, False
        try:
            if len(data) > MAX_MESSAGE_BYTES:
                raise _RefusedError(Reason.TOO_LARGE, f"{len(data)} bytes, the limit is {MAX_MESSAGE_BYTES}")
            if (batch := self._batches.read(data)) is not None:
                key, record = batch
            else:
                name, record = self._store.decode(data)
                single = name == "uldp.Report"
                key = self._key_of(record)
            fault = (_fault_of_report if single else _fault_of_batch)(self._served[key], record)
            return _Found(record, single, key, fault)
        except tuple(_FRAMING_REASONS) as error:
            return _Found(None, False, refusal=_Refusal(_FRAMING_REASONS[type(error)], str(error)))
        except _RefusedError as error:
            return _Found(record, single, refusal=_Refusal(*error.args))

    def _key_of(self, record: Mapping[str, Any]) -> CollectionKey:
        key = record["collection"], record["version"]
        if key not in self._served:
            known = record["collection"] in self._collections
            reason = Reason.UNKNOWN_VERSION if known else Reason.UNKNOWN_COLLECTION
            detail = f"{record['collection'][:64]!r} version {record['version']}"
            raise _RefusedError(reason, detail, None, _reports_in(record))
        return key


def _alike(messages: Bodies, rows: Rows, shape: Layout | bytes) -> tuple[Rows, FastRows | None]:
    """Return which of the messages in ``rows`` have a shape, and what they hold if it is a layout."""
    part = Bodies(messages.buffer, messages.starts[rows], messages.ends[rows])
    if isinstance(shape, bytes):
        beginnings = fields_at(messages.buffer + bytes(len(shape)), part.starts, len(shape))
        return np.flatnonzero((beginnings == np.void(shape)) & (part.ends - part.starts >= len(shape))), None
    found, _ = decode_columns(part, [shape])
    return (found[0].rows, found[0]) if found else (rows[:0], None)


def _fault_of_report(served: ServedCollection, record: Mapping[str, Any]) -> PayloadFault | None:
    """Return why the payload of a single report does not fit into a column of its collection; None if it fits."""
    payload = record["payload"]
    if isinstance(payload, bytes):
        return _fault_of_bytes(served, len(payload))
    form = served.mechanism.form
    if form.symbols is not None and not 0 <= payload < 1 << 32:
        return Reason.OUT_OF_DOMAIN, f"symbol {payload} of {form.symbols}"
    return _fault_of_symbol(served)


def _fault_of_batch(served: ServedCollection, record: Mapping[str, Any]) -> PayloadFault | None:
    """Return why no payload of a batch can be counted, or None; _RefusedError if columns differ in length."""
    kind, column = next(iter(record["payload"].items()))
    width = _width_of_batch(record)
    if width is None:
        ids, times = len(record["report_ids"]), len(record["event_times"])
        detail = f"columns of {ids} bytes of ids, {times} of times and {len(column)} of {kind}"
        raise _RefusedError(Reason.MALFORMED, detail, served)
    return _fault_of_symbol(served) if kind == "symbols" else _fault_of_bytes(served, width)


def _width_of_batch(record: Mapping[str, Any]) -> int | None:
    """Return how many bytes each payload of a batch has; None if its columns are not of as many reports."""
    ids, times = record["report_ids"], record["event_times"]
    kind, column = next(iter(record["payload"].items()))
    n = len(times) // 8
    width = 4 if kind == "symbols" else len(column) // max(n, 1)
    return width if (len(ids), len(times), len(column)) == (16 * n, 8 * n, width * n) else None


def _reports_in(record: Mapping[str, Any]) -> int:
    """Return how many reports a message of no served collection counts as.

    No spec says how long its payloads are. But a batch has 24 bytes of an id and a time for each report, so the size of
    the message bounds what a sender can claim; one whose columns do not fit each other counts as one report.
    """
    if "report_ids" not in record or _width_of_batch(record) is None:
        return 1
    return max(len(record["event_times"]) // 8, 1)


def _fault_of_bytes(served: ServedCollection, width: int) -> PayloadFault | None:
    expected = served.mechanism.form.width
    if expected is None:
        return Reason.WRONG_PAYLOAD, f"{width} bytes, but {served.spec.mechanism.name} reports a symbol"
    if width != expected:
        return Reason.WRONG_LENGTH, f"{width} bytes, not {expected}"
    return None


def _fault_of_symbol(served: ServedCollection) -> PayloadFault | None:
    if served.mechanism.form.width is None:
        return None
    return Reason.WRONG_PAYLOAD, f"a symbol, but {served.spec.mechanism.name} reports bytes"
