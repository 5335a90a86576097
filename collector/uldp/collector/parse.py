"""Columns of decoded reports of one collection and version, before validation, with the message of each report."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uldp.collector.collections import YEAR_10000, ServedCollection
from uldp.schemas.arrays import Payloads, ReportIds, Rows, Times
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message, Report, ReportBatch

#: The reason why the collection cannot count a payload, and a detail for the reader of the rejected report.
PayloadFault = tuple[Reason, str]
#: The index of a message, and the record that was decoded from it.
Record = tuple[int, dict[str, Any]]
#: Units that a client may use by mistake instead of milliseconds, and how many of each make one millisecond.
_UNITS = {"seconds": 1e-3, "microseconds": 1e3, "nanoseconds": 1e6}
#: The largest symbol that a single report can hold, because its field is an Avro int.
MAX_INT = (1 << 31) - 1


@dataclass(frozen=True, slots=True, eq=False)
class ParsedReports:
    """Reports of one collection and version after decoding, before any check.

    Attributes:
        origins: Shape (n,): index of the message that held each report.
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

    def message_data(self, row: int, message: Message) -> bytes:
        """Return a message that holds only the report of ``row``."""
        if not self.batched:
            return message.data
        key, report_id, time = self.served.spec.key, self.report_ids[row].tobytes(), self.event_times[row]
        payload = self.payloads[row]
        if self.payloads.ndim == 2:
            return Report(*key, report_id, int(time), payload.tobytes()).encode()
        if payload > MAX_INT:  # a single report cannot hold this symbol, but a batch can
            return ReportBatch(*key, report_id, time.tobytes(), symbols=payload.tobytes()).encode()
        return Report(*key, report_id, int(time), int(payload)).encode()

    def reason(self, row: int, published: int) -> tuple[Reason, str]:
        """Return the reason and detail of the first check that the report of ``row`` fails."""
        served, time = self.served, int(self.event_times[row])
        (earliest,), (latest,) = served.event_times(np.array([published], dtype=np.int64))
        if served.spec.retired:
            return Reason.RETIRED_VERSION, f"{served.spec.collection!r} version {served.spec.version}"
        if self.fault is not None:
            return self.fault
        if not 0 <= time < YEAR_10000:
            return Reason.INVALID_TIME, f"event time {time}{_other_unit(time, earliest, latest)}"
        if time > latest:
            return Reason.TOO_EARLY, f"event time is {time - published} ms ahead of the stream's clock"
        if time < earliest:
            unit = _other_unit(time, earliest, latest)
            return Reason.EXPIRED, f"event time is {published - time} ms before the stream's clock{unit}"
        if served.bits_width is None:
            return Reason.OUT_OF_DOMAIN, f"symbol {self.payloads[row]} of {served.mechanism.size}"
        return Reason.IMPOSSIBLE_BITS, f"not an output of {served.spec.mechanism.name}"


def _other_unit(time: int, earliest: int, latest: int) -> str:
    """Return a hint that names the unit in which an event time would be admitted, or an empty string if none is."""
    unit = next((unit for unit, number in _UNITS.items() if earliest <= time / number <= latest), None)
    return f"; it looks like {unit} since 1970, and must be milliseconds" if unit is not None else ""


class RejectError(Exception):
    """A message whose reports the decoder cannot separate: the reason, a detail, and its collection if it is known."""

    def __init__(self, reason: Reason, detail: str, served: ServedCollection | None = None):
        super().__init__(detail)
        self.reason, self.detail, self.served = reason, detail, served


def fault_of_report(served: ServedCollection, record: Mapping[str, Any]) -> PayloadFault | None:
    """Return why the payload of a single report does not fit into a column of its collection; None if it fits."""
    payload = record["payload"]
    if isinstance(payload, bytes):
        return _fault_of_bits(served, len(payload))
    if served.bits_width is None and not 0 <= payload < 1 << 32:
        return Reason.OUT_OF_DOMAIN, f"symbol {payload} of {served.mechanism.size}"
    return _fault_of_symbol(served)


def fault_of_batch(served: ServedCollection, record: Mapping[str, Any]) -> PayloadFault | None:
    """Return why the collection can count none of the payloads of a batch; None if the payloads fit.

    Raises:
        RejectError: if the columns have different lengths. The decoder then cannot tell the reports apart and rejects
            the batch as a whole.
    """
    ids, times = record["report_ids"], record["event_times"]
    kind, column = next(iter(record["payload"].items()))
    n = len(times) // 8
    width = 4 if kind == "symbols" else len(column) // max(n, 1)
    if (len(ids), len(times), len(column)) != (16 * n, 8 * n, width * n):
        detail = f"columns of {len(ids)} bytes of ids, {len(times)} of times and {len(column)} of {kind}"
        raise RejectError(Reason.MALFORMED, detail, served)
    return _fault_of_symbol(served) if kind == "symbols" else _fault_of_bits(served, width)


def _fault_of_bits(served: ServedCollection, width: int) -> PayloadFault | None:
    if served.bits_width is None:
        return Reason.WRONG_PAYLOAD, f"{width} bytes of bits, but {served.spec.mechanism.name} reports a symbol"
    if width != served.bits_width:
        return Reason.WRONG_LENGTH, f"{width} bytes of bits, not {served.bits_width}"
    return None


def _fault_of_symbol(served: ServedCollection) -> PayloadFault | None:
    if served.bits_width is None:
        return None
    return Reason.WRONG_PAYLOAD, f"a symbol, but {served.spec.mechanism.name} reports bits"


def from_reports(served: ServedCollection, fault: PayloadFault | None, reports: list[Record]) -> ParsedReports:
    """Make columns of single reports that share one fault or have none. Zeros replace payloads that do not fit."""
    payloads: Payloads
    if fault is not None:
        payloads = np.zeros(len(reports), dtype=np.uint32)
    elif served.bits_width is None:
        payloads = np.array([record["payload"] for _, record in reports], dtype=np.uint32)
    else:
        joined = b"".join([record["payload"] for _, record in reports])
        payloads = np.frombuffer(joined, np.uint8).reshape(-1, served.bits_width)
    return ParsedReports(
        served,
        np.array([index for index, _ in reports], dtype=np.intp),
        False,
        np.frombuffer(b"".join([record["report_id"] for _, record in reports]), np.uint64).reshape(-1, 2),
        np.array([record["event_time"] for _, record in reports], dtype=np.int64),
        payloads,
        fault,
    )


def from_batches(served: ServedCollection, fault: PayloadFault | None, batches: list[Record]) -> ParsedReports:
    """Join the columns of batches that share one fault or have none; checking them all costs little more than one."""
    times = np.frombuffer(b"".join([record["event_times"] for _, record in batches]), np.int64)
    column = b"".join([next(iter(record["payload"].values())) for _, record in batches])
    payloads: Payloads
    if "symbols" in batches[0][1]["payload"]:
        payloads = np.frombuffer(column, np.uint32)
    else:
        payloads = np.frombuffer(column, np.uint8).reshape(len(times), len(column) // max(len(times), 1))
    return ParsedReports(
        served,
        np.repeat(
            np.array([index for index, _ in batches], dtype=np.intp),
            [len(record["event_times"]) // 8 for _, record in batches],
        ),
        True,
        np.frombuffer(b"".join([record["report_ids"] for _, record in batches]), np.uint64).reshape(-1, 2),
        times,
        payloads,
        fault,
    )
