"""Parse messages into columns of reports, one set of columns for each collection and version, before any check."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby
from typing import Any, NamedTuple

import numpy as np

from uldp.collector.collections import ServedCollection
from uldp.schemas.arrays import Payloads, ReportIds, Rows, Times
from uldp.schemas.codec.batched import BatchViews
from uldp.schemas.codec.columnar import FastRows, Layout, decode_columns, report_schema
from uldp.schemas.codec.packed import Bodies
from uldp.schemas.framing import (
    MalformedBodyError,
    NotSingleObjectError,
    RegistryFramingError,
    TruncatedBodyError,
    UnknownSchemaError,
    report_store,
)
from uldp.schemas.reasons import Reason
from uldp.schemas.specs.collection import CollectionKey

#: Pub/Sub's limit for a message. The parser rejects a longer message without decoding it.
MAX_MESSAGE_BYTES = 10_000_000
_FRAMING_REASONS: dict[type[ValueError], Reason] = {
    NotSingleObjectError: Reason.NOT_AVRO,
    RegistryFramingError: Reason.REGISTRY_FRAMING,
    UnknownSchemaError: Reason.UNKNOWN_SCHEMA,
    TruncatedBodyError: Reason.TRUNCATED,
    MalformedBodyError: Reason.MALFORMED,
}
#: Batches of collections with the same rules are joined up to the first number of reports. Those of a collection with
#: the second number or more stay alone: a copy of them takes longer than to judge them apart.
_JOINED, _WORTH_A_PART = 1 << 16, 1 << 14
#: The reason why the collection cannot count a payload, and a detail for the reader of the rejected report.
PayloadFault = tuple[Reason, str]
#: The index of a message, and the record that was decoded from it.
Record = tuple[int, dict[str, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class ParsedReports:
    """Reports of one collection and version after decoding, before any check.

    Attributes:
        origins: Shape (n,): index of the message that held each report. If the messages are batches, the reports of
            each come one after the other, and the batches of one collection in ascending order.
        batched: Whether the messages are batches, which can hold several reports.
        fault: Why none of these payloads can be counted; None if they fit the collection.
    """

    served: ServedCollection
    origins: Rows
    batched: bool
    report_ids: ReportIds
    event_times: Times
    payloads: Payloads
    fault: PayloadFault | None = None

    def __len__(self) -> int:
        return len(self.origins)


@dataclass(frozen=True, slots=True, eq=False)
class AlikeReports:
    """Reports of one or more collections with the same rules, which are judged together.

    Attributes:
        reports: All of them; they name the first of the collections.
        collections: The collections, each of which has one or more reports.
        ends: Where the reports of each collection end.
    """

    reports: ParsedReports
    collections: Sequence[ServedCollection]
    ends: Sequence[int]

    def spans(self) -> Iterator[tuple[ServedCollection, int, int]]:
        """Yield each collection, and where its reports start and end."""
        return zip(self.collections, [0, *self.ends], self.ends, strict=False)


class Unparsed(NamedTuple):
    """A message whose reports the parser cannot separate, so that it counts as one rejected report.

    Attributes:
        origin: Index of the message.
        served: The collection that the message names, if the parser could read that.
    """

    origin: int
    reason: Reason
    detail: str
    served: ServedCollection | None = None


class MessageParser:
    """Parses messages, thousands at a time.

    Args:
        served: The served collections; the parser rejects messages of other collections.
    """

    def __init__(self, served: Mapping[CollectionKey, ServedCollection]) -> None:
        self._served = served
        self._collections = {collection for collection, _ in served}
        # Those with the same rules come one after the other, so that ``parse`` finds them together.
        rules = {each.rules: number for number, each in enumerate(served.values())}
        self._by_layout = sorted(served.values(), key=lambda each: rules[each.rules])
        schema = report_schema()
        self._layouts = [Layout.of(schema, *each.spec.key, each.mechanism.form.width) for each in self._by_layout]
        self._batches = BatchViews.of(served)
        self._store = report_store()

    def parse(self, messages: Bodies) -> tuple[Iterator[AlikeReports], list[Unparsed]]:
        """Parse the bodies of messages; no input raises.

        Returns:
            The reports, and the messages that hold none that can be separated. Reports that can be judged together come
            together: messages of a thousand collections hold few of each, and to judge few takes as long as to judge
            many. The iterator makes the columns when the caller asks for them, so that the caller finds them in the
            processor's caches.
        """
        found, rest = decode_columns(messages, self._layouts)
        unparsed: list[Unparsed] = []
        singles: dict[tuple[CollectionKey, PayloadFault | None], list[Record]] = defaultdict(list)
        batches: dict[tuple[CollectionKey, PayloadFault | None], list[Record]] = defaultdict(list)
        # A sender can send one message a million times, and to find what is wrong takes long.
        wrong: dict[bytes, Any] = {}
        for origin in rest.tolist():
            data = messages[origin]
            if data in wrong:
                unparsed.append(Unparsed(origin, *wrong[data]))
                continue
            try:
                key, name, record = self._decode(data)
                if name == "uldp.Report":
                    singles[key, _fault_of_report(self._served[key], record)].append((origin, record))
                else:
                    batches[key, _fault_of_batch(self._served[key], record)].append((origin, record))
            except _UnparsedError as error:
                wrong[data] = error.args
                unparsed.append(Unparsed(origin, *error.args))
        return (
            chain(
                chain.from_iterable(map(self._from_columns, found)),
                (_from_reports(self._served[key], fault, records) for (key, fault), records in singles.items()),
                self._alike(batches),
            ),
            unparsed,
        )

    def _alike(
        self, batches: Mapping[tuple[CollectionKey, PayloadFault | None], list[Record]]
    ) -> Iterator[AlikeReports]:
        """Yield the columns of batches, those of collections with the same rules together."""
        waiting: dict[str, list[_Batches]] = defaultdict(list)
        reports: Counter[str] = Counter()
        for (key, fault), records in batches.items():
            part = _Batches.of(self._served[key], records)
            if not part.reports:  # a batch may hold none
                continue
            if fault is not None or part.reports >= _WORTH_A_PART:
                yield _from_batches([part], fault)
                continue
            rules = part.served.rules
            waiting[rules].append(part)
            reports[rules] += part.reports
            if reports[rules] >= _JOINED:
                del reports[rules]
                yield _from_batches(waiting.pop(rules))
        yield from map(_from_batches, waiting.values())

    def _from_columns(self, fast: FastRows) -> Iterator[AlikeReports]:
        collections = [self._by_layout[layout] for layout in fast.layouts]
        start = 0
        for _, alike in groupby(zip(collections, fast.ends, strict=True), lambda each: each[0].rules):
            of_rules, ends = zip(*alike, strict=True)
            rows = slice(start, ends[-1])
            reports = ParsedReports(
                of_rules[0], fast.rows[rows], False, fast.report_ids[rows], fast.event_times[rows], fast.payloads[rows]
            )
            yield AlikeReports(reports, of_rules, [end - start for end in ends])
            start = ends[-1]

    def _decode(self, data: bytes) -> tuple[CollectionKey, str, dict[str, Any]]:
        """Decode one message and return its collection and version, the name of its schema, and the record."""
        if len(data) > MAX_MESSAGE_BYTES:
            raise _UnparsedError(Reason.TOO_LARGE, f"{len(data)} bytes, the limit is {MAX_MESSAGE_BYTES}")
        if (batch := self._batches.read(data)) is not None:
            key, columns = batch
            return key, "uldp.ReportBatch", columns
        try:
            name, record = self._store.decode(data)
        except tuple(_FRAMING_REASONS) as error:
            raise _UnparsedError(_FRAMING_REASONS[type(error)], str(error)) from error
        key = record["collection"], record["version"]
        if key not in self._served:
            known = record["collection"] in self._collections
            reason = Reason.UNKNOWN_VERSION if known else Reason.UNKNOWN_COLLECTION
            raise _UnparsedError(reason, f"{record['collection'][:64]!r} version {record['version']}")
        return key, name, record


class _UnparsedError(Exception):
    """A message whose reports cannot be separated; its arguments are those of ``Unparsed`` behind ``origin``."""


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
    """Return why the collection can count none of the payloads of a batch; None if the payloads fit.

    Raises:
        _UnparsedError: if the columns have different lengths. The reports of the batch cannot be told apart then.
    """
    ids, times = record["report_ids"], record["event_times"]
    kind, column = next(iter(record["payload"].items()))
    n = len(times) // 8
    width = 4 if kind == "symbols" else len(column) // max(n, 1)
    if (len(ids), len(times), len(column)) != (16 * n, 8 * n, width * n):
        detail = f"columns of {len(ids)} bytes of ids, {len(times)} of times and {len(column)} of {kind}"
        raise _UnparsedError(Reason.MALFORMED, detail, served)
    return _fault_of_symbol(served) if kind == "symbols" else _fault_of_bytes(served, width)


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


def _from_reports(served: ServedCollection, fault: PayloadFault | None, reports: list[Record]) -> AlikeReports:
    """Make columns of single reports that share one fault or have none. Zeros replace payloads that do not fit."""
    payloads: Payloads
    if fault is not None:
        payloads = np.zeros(len(reports), dtype=np.uint32)
    elif served.mechanism.form.width is None:
        payloads = np.array([record["payload"] for _, record in reports], dtype=np.uint32)
    else:
        joined = b"".join([record["payload"] for _, record in reports])
        payloads = np.frombuffer(joined, np.uint8).reshape(-1, served.mechanism.form.width)
    parsed = ParsedReports(
        served,
        np.array([origin for origin, _ in reports], dtype=np.intp),
        False,
        np.frombuffer(b"".join([record["report_id"] for _, record in reports]), np.uint64).reshape(-1, 2),
        np.array([record["event_time"] for _, record in reports], dtype=np.int64),
        payloads,
        fault,
    )
    return AlikeReports(parsed, [served], [len(parsed)])


class _Batches(NamedTuple):
    """Batches of one collection and version, and the number of their reports."""

    served: ServedCollection
    reports: int
    records: list[Record]

    @classmethod
    def of(cls, served: ServedCollection, records: list[Record]) -> "_Batches":
        return cls(served, sum(len(record["event_times"]) for _, record in records) // 8, records)


def _from_batches(parts: Sequence[_Batches], fault: PayloadFault | None = None) -> AlikeReports:
    """Join the columns of batches that share one fault or have none; checking them all costs little more than one."""
    origins, batches = zip(*chain.from_iterable(part.records for part in parts), strict=True)
    times = np.frombuffer(b"".join([batch["event_times"] for batch in batches]), np.int64)
    column = b"".join([next(iter(batch["payload"].values())) for batch in batches])
    payloads: Payloads
    if "symbols" in batches[0]["payload"]:
        payloads = np.frombuffer(column, np.uint32)
    else:
        payloads = np.frombuffer(column, np.uint8).reshape(len(times), -1)
    reports = ParsedReports(
        parts[0].served,
        np.repeat(np.array(origins, dtype=np.intp), [len(batch["event_times"]) // 8 for batch in batches]),
        True,
        np.frombuffer(b"".join([batch["report_ids"] for batch in batches]), np.uint64).reshape(-1, 2),
        times,
        payloads,
        fault,
    )
    return AlikeReports(reports, [part.served for part in parts], [*accumulate(part.reports for part in parts)])
