"""Decode and validate messages, thousands at a time; whatever cannot be counted gets a reason.

Pure: messages in, columns, late and rejected out. Each report ends in exactly one of the three, so
received = decoded + late + rejected holds call by call.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import numpy as np

from mechanisms.mechanism import Payloads
from schemas.collection import CollectionSpec
from schemas.framing import (
    MalformedBodyError,
    NotSingleObjectError,
    TruncatedBodyError,
    UnknownSchemaError,
    report_store,
)
from schemas.reasons import Reason
from schemas.records import ATTEMPT, Accounting, Message, Rejected, Report, ReportBatch
from transforms.columnar import Layout, decode_columns, report_schema
from transforms.columns import ReportColumns, ReportIds, Rows, Times
from transforms.targets import YEAR_10000, CollectionKey, Target, targets

#: Pub/Sub's limit for a message. Anything longer is rejected before it is looked at.
MAX_MESSAGE_BYTES = 10_000_000
#: How much of a message that is too large is kept in its rejected record.
KEPT_BYTES = 4096
#: The largest symbol that a single report can hold: an Avro int.
MAX_INT = (1 << 31) - 1
_FRAMING_REASONS: dict[type[ValueError], Reason] = {
    NotSingleObjectError: Reason.NOT_AVRO,
    UnknownSchemaError: Reason.UNKNOWN_SCHEMA,
    TruncatedBodyError: Reason.TRUNCATED,
    MalformedBodyError: Reason.MALFORMED,
}


@dataclass(slots=True)
class Decoded:
    """What became of a number of messages.

    Attributes:
        received: Reports that arrived; a message that cannot be decoded is one.
        columns: Reports to be counted, unless they are duplicates.
        late: One message for each report that came after its windows had closed.
        rejected: One record for each report that cannot be counted.
        accounting: Late and rejected reports of each time slice, where the report named one.
    """

    received: int = 0
    columns: list[ReportColumns] = field(default_factory=list)
    late: list[Message] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    accounting: dict[tuple[CollectionKey, int], Accounting] = field(default_factory=lambda: defaultdict(Accounting))


@dataclass(frozen=True, slots=True, eq=False)
class _Parsed:
    """Reports of one target after decoding, before any check.

    Attributes:
        origins: Shape (n,): index of the message that each report came in.
        batched: Whether that message holds other reports too.
    """

    target: Target
    origins: Rows
    batched: bool
    report_ids: ReportIds
    event_times: Times
    payloads: Payloads

    def message_data(self, row: int, message: Message) -> bytes:
        """Return a message that holds the report of ``row`` alone."""
        if not self.batched:
            return message.data
        key, report_id, time = self.target.spec.key, self.report_ids[row].tobytes(), self.event_times[row]
        payload = self.payloads[row]
        if self.target.bits_width is not None:
            return Report(*key, report_id, int(time), payload.tobytes()).encode()
        if payload > MAX_INT:  # it takes a batch to say that
            return ReportBatch(*key, report_id, time.tobytes(), symbols=payload.tobytes()).encode()
        return Report(*key, report_id, int(time), int(payload)).encode()


class _RejectError(Exception):
    """A message that cannot be counted. ``slice_start`` says which time slice it named, if it named one."""

    def __init__(self, reason: Reason, detail: str, key: CollectionKey = ("", 0), slice_start: int | None = None):
        super().__init__(detail)
        self.reason, self.detail, self.key, self.slice_start = reason, detail, key, slice_start


class ReportDecoder:
    """Decodes and validates messages, thousands at a time.

    Args:
        specs: The collections that are served; reports of others are rejected.
        judge_lateness: Whether a report that was published after its windows closed is late. In a bounded job no
            window has closed, and every report is counted.
    """

    def __init__(self, specs: Iterable[CollectionSpec], *, judge_lateness: bool) -> None:
        self._targets = targets(specs)
        self._collections = {collection for collection, _ in self._targets}
        self._judge_lateness = judge_lateness
        self._by_layout = list(self._targets.values())
        schema = report_schema()
        self._layouts = [Layout.of(schema, *target.spec.key, target.bits_width) for target in self._by_layout]
        self._store = report_store()
        self._software = metadata.version("uldp-stream")

    def decode(self, messages: Sequence[Message]) -> Decoded:
        """Decode ``messages``. No input raises; each report ends in ``columns``, ``late`` or ``rejected``."""
        out = Decoded()
        parsed: list[_Parsed] = []
        found, rest = decode_columns([message.data for message in messages], self._layouts)
        for fast in found:
            target = self._by_layout[fast.layout]
            parsed.append(_Parsed(target, fast.rows, False, fast.report_ids, fast.event_times, fast.payloads))
        singles: dict[CollectionKey, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
        for index in rest.tolist():
            try:
                key, name, record = self._decode_plain(messages[index].data)
                if name == "uldp.Report":
                    _check_payload(self._targets[key], record, messages[index].publish_time)
                    singles[key].append((index, record))
                else:
                    parsed.append(_from_batch(self._targets[key], index, record))
            except _RejectError as error:
                self._reject(messages[index], error, out)
        parsed.extend(_from_records(self._targets[key], reports) for key, reports in singles.items())
        published = np.array([message.publish_time for message in messages], dtype=np.int64)
        for reports in parsed:
            out.received += len(reports.origins)
            self._validate(reports, published[reports.origins], messages, out)
        return out

    def _decode_plain(self, data: bytes) -> tuple[CollectionKey, str, dict[str, Any]]:
        """Decode one message with the reference decoder: its collection, the name of its schema, and the record."""
        if len(data) > MAX_MESSAGE_BYTES:
            raise _RejectError(Reason.TOO_LARGE, f"{len(data)} bytes, the limit is {MAX_MESSAGE_BYTES}")
        try:
            name, record = self._store.decode(data)
        except tuple(_FRAMING_REASONS) as error:
            raise _RejectError(_FRAMING_REASONS[type(error)], str(error)) from error
        key = record["collection"], record["version"]
        if key not in self._targets:
            known = record["collection"] in self._collections
            reason = Reason.UNKNOWN_VERSION if known else Reason.UNKNOWN_COLLECTION
            raise _RejectError(reason, f"{record['collection'][:64]!r} version {record['version']}")
        return key, name, record

    def _reject(self, message: Message, error: _RejectError, out: Decoded) -> None:
        out.received += 1
        if error.reason is Reason.TOO_LARGE:
            message = message._replace(data=message.data[:KEPT_BYTES])
        out.rejected.append(self._rejected(message, error.reason, error.detail))
        if error.slice_start is not None:
            out.accounting[error.key, error.slice_start] += Accounting(received=1, rejected=1)

    def _rejected(self, message: Message, reason: Reason, detail: str) -> Rejected:
        return Rejected(
            stage="decode",
            reason=reason,
            detail=detail,
            data=message.data,
            attributes=message.attributes,
            publish_time=message.publish_time,
            source=message.source,
            attempt=_attempt(message.attributes),
            software=self._software,
        )

    def _validate(self, parsed: _Parsed, published: Times, messages: Sequence[Message], out: Decoded) -> None:
        """Check all reports of one target at once and sort them into ``out``."""
        target, times = parsed.target, parsed.event_times
        earliest, latest = target.event_times(published)
        timely = (times >= earliest) & (times <= latest) & (not target.spec.retired)
        good = timely & target.mechanism.possible(parsed.payloads)
        slices = target.slice_start(times)
        late = good & (published >= slices + target.closes_after) if self._judge_lateness else np.zeros_like(good)
        counted = good & ~late
        columns = ReportColumns(*target.spec.key, parsed.report_ids, slices, parsed.payloads)
        if counted.all():
            out.columns.append(columns)
            return
        if counted.any():
            out.columns.append(columns.take(counted))
        for row in np.flatnonzero(~counted).tolist():  # the exceptions: each needs a record of its own anyway
            message = messages[parsed.origins[row]]
            message = message._replace(data=parsed.message_data(row, message))
            if late[row]:
                out.late.append(message)
                outcome = Accounting(received=1, late=1)
            else:
                if target.spec.retired:
                    reason, detail = Reason.RETIRED_VERSION, f"{target.spec.collection!r} version {target.spec.version}"
                elif not 0 <= times[row] < YEAR_10000:
                    reason, detail = Reason.INVALID_TIME, f"event time {times[row]}"
                elif times[row] > latest[row]:
                    ahead = times[row] - published[row]
                    reason, detail = Reason.TOO_EARLY, f"event time is {ahead} ms ahead of the stream's clock"
                elif times[row] < earliest[row]:
                    age = published[row] - times[row]
                    reason, detail = Reason.EXPIRED, f"event time is {age} ms before the stream's clock"
                elif target.bits_width is None:
                    reason, detail = Reason.OUT_OF_DOMAIN, f"symbol {parsed.payloads[row]} of {target.mechanism.size}"
                else:
                    reason, detail = Reason.IMPOSSIBLE_BITS, f"not an output of {target.spec.mechanism.name}"
                out.rejected.append(self._rejected(message, reason, detail))
                outcome = Accounting(received=1, rejected=1)
            # A time or a version that was refused names no window: a device must not open windows at will.
            if timely[row]:
                out.accounting[target.spec.key, int(slices[row])] += outcome


def _attempt(attributes: Mapping[str, str]) -> int:
    """Read which attempt a message is. Whoever publishes may write anything there."""
    written = attributes.get(ATTEMPT, "1")
    return max(int(written), 1) if re.fullmatch("[0-9]{1,4}", written) else 1


def _check_payload(target: Target, record: Mapping[str, Any], published: int) -> None:
    """Raise _RejectError if the payload of a single report cannot stand in a column."""
    payload = record["payload"]
    if target.spec.retired:
        raise _RejectError(Reason.RETIRED_VERSION, f"{target.spec.collection!r} version {target.spec.version}")
    if isinstance(payload, bytes):
        if target.bits_width is None:
            reason, detail = Reason.WRONG_PAYLOAD, f"bits, but {target.spec.mechanism.name} reports a symbol"
        elif len(payload) != target.bits_width:
            reason, detail = Reason.WRONG_LENGTH, f"{len(payload)} bytes of bits, not {target.bits_width}"
        else:
            return
    elif target.bits_width is not None:
        reason, detail = Reason.WRONG_PAYLOAD, f"a symbol, but {target.spec.mechanism.name} reports bits"
    elif not 0 <= payload < 1 << 32:  # the domain is checked after the time, as for reports that come as columns
        reason, detail = Reason.OUT_OF_DOMAIN, f"symbol {payload} of {target.mechanism.size}"
    else:
        return
    time = record["event_time"]
    (earliest,), (latest,) = target.event_times(np.array([published], dtype=np.int64))
    start = time // target.slice_size * target.slice_size if earliest <= time <= latest else None
    raise _RejectError(reason, detail, target.spec.key, start)


def _from_records(target: Target, reports: list[tuple[int, dict[str, Any]]]) -> _Parsed:
    """Make columns of single reports that have passed ``_check_payload``."""
    payloads: Payloads
    if target.bits_width is None:
        payloads = np.array([record["payload"] for _, record in reports], dtype=np.uint32)
    else:
        joined = b"".join([record["payload"] for _, record in reports])
        payloads = np.frombuffer(joined, np.uint8).reshape(-1, target.bits_width)
    return _Parsed(
        target,
        np.array([index for index, _ in reports], dtype=np.intp),
        False,
        np.frombuffer(b"".join([record["report_id"] for _, record in reports]), np.uint64).reshape(-1, 2),
        np.array([record["event_time"] for _, record in reports], dtype=np.int64),
        payloads,
    )


def _from_batch(target: Target, index: int, record: Mapping[str, Any]) -> _Parsed:
    """View the columns of a batch, without a copy.

    Raises:
        _RejectError: if they are of the wrong kind or of different lengths; the batch is then rejected as one.
    """
    ids, times = record["report_ids"], record["event_times"]
    kind, column = next(iter(record["payload"].items()))
    n = len(times) // 8
    if (kind == "bits") != (target.bits_width is not None):
        raise _RejectError(Reason.WRONG_PAYLOAD, f"{kind}, which {target.spec.mechanism.name} does not report")
    width = 4 if target.bits_width is None else target.bits_width
    if (len(ids), len(times), len(column)) != (16 * n, 8 * n, width * n):
        detail = (
            f"columns of {len(ids)}, {len(times)} and {len(column)} bytes, not of 16, 8 and {width} for each report"
        )
        raise _RejectError(Reason.MALFORMED, detail)
    payloads: Payloads
    if target.bits_width is None:
        payloads = np.frombuffer(column, np.uint32)
    else:
        payloads = np.frombuffer(column, np.uint8).reshape(n, width)
    return _Parsed(
        target,
        np.full(n, index, dtype=np.intp),
        True,
        np.frombuffer(ids, np.uint64).reshape(n, 2),
        np.frombuffer(times, np.int64),
        payloads,
    )
