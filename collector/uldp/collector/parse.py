"""Reports of one collection and version between decoding and validation: columns, with where each came from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uldp.collector.collections import YEAR_10000, Target
from uldp.schemas.arrays import Payloads, ReportIds, Rows, Times
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message, Report, ReportBatch

#: Why a payload is of no use to its target, and a detail for a person.
Misfit = tuple[Reason, str]
#: The index of a message, and the record that it holds.
Record = tuple[int, dict[str, Any]]
#: Other units of time that a client may count in by mistake: how many of each are a millisecond.
_UNITS = {"seconds": 1e-3, "microseconds": 1e3, "nanoseconds": 1e6}
#: The largest symbol that a single report can hold: an Avro int.
MAX_INT = (1 << 31) - 1


@dataclass(frozen=True, slots=True, eq=False)
class ParsedReports:
    """Reports of one target after decoding, before any check.

    Attributes:
        origins: Shape (n,): index of the message that each report came in.
        batched: Whether that message holds other reports too.
        misfit: Why no payload of these can be counted, if so.
    """

    target: Target
    origins: Rows
    batched: bool
    report_ids: ReportIds
    event_times: Times
    payloads: Payloads
    misfit: Misfit | None = None

    def message_data(self, row: int, message: Message) -> bytes:
        """Return a message that holds the report of ``row`` alone."""
        if not self.batched:
            return message.data
        key, report_id, time = self.target.spec.key, self.report_ids[row].tobytes(), self.event_times[row]
        payload = self.payloads[row]
        if self.payloads.ndim == 2:
            return Report(*key, report_id, int(time), payload.tobytes()).encode()
        if payload > MAX_INT:  # it takes a batch to say that
            return ReportBatch(*key, report_id, time.tobytes(), symbols=payload.tobytes()).encode()
        return Report(*key, report_id, int(time), int(payload)).encode()

    def reason(self, row: int, published: int) -> tuple[Reason, str]:
        """Say why the report of ``row`` cannot be counted: the first of the checks that it fails."""
        target, time = self.target, int(self.event_times[row])
        (earliest,), (latest,) = target.event_times(np.array([published], dtype=np.int64))
        if target.spec.retired:
            return Reason.RETIRED_VERSION, f"{target.spec.collection!r} version {target.spec.version}"
        if self.misfit is not None:
            return self.misfit
        if not 0 <= time < YEAR_10000:
            return Reason.INVALID_TIME, f"event time {time}{_other_unit(time, earliest, latest)}"
        if time > latest:
            return Reason.TOO_EARLY, f"event time is {time - published} ms ahead of the stream's clock"
        if time < earliest:
            unit = _other_unit(time, earliest, latest)
            return Reason.EXPIRED, f"event time is {published - time} ms before the stream's clock{unit}"
        if target.bits_width is None:
            return Reason.OUT_OF_DOMAIN, f"symbol {self.payloads[row]} of {target.mechanism.size}"
        return Reason.IMPOSSIBLE_BITS, f"not an output of {target.spec.mechanism.name}"


def _other_unit(time: int, earliest: int, latest: int) -> str:
    """Name the unit in which an event time would be one that a report may claim; return nothing if there is none."""
    unit = next((unit for unit, number in _UNITS.items() if earliest <= time / number <= latest), None)
    return f"; it looks like {unit} since 1970, and must be milliseconds" if unit is not None else ""


class RejectError(Exception):
    """A message that cannot be counted, and nobody knows which reports are in it: why, and of which target, if any."""

    def __init__(self, reason: Reason, detail: str, target: Target | None = None):
        super().__init__(detail)
        self.reason, self.detail, self.target = reason, detail, target


def misfit_of_report(target: Target, record: Mapping[str, Any]) -> Misfit | None:
    """Say why the payload of a single report cannot stand in a column of its target; None if it can."""
    payload = record["payload"]
    if isinstance(payload, bytes):
        return _misfit_of_bits(target, len(payload))
    if target.bits_width is None and not 0 <= payload < 1 << 32:
        return Reason.OUT_OF_DOMAIN, f"symbol {payload} of {target.mechanism.size}"
    return _misfit_of_symbol(target)


def misfit_of_batch(target: Target, record: Mapping[str, Any]) -> Misfit | None:
    """Say why the payloads of a batch are of no use to its target, each of them; None if they fit.

    Raises:
        RejectError: if the columns are of different lengths. Then nobody knows which report is which, and the batch is
            rejected as one.
    """
    ids, times = record["report_ids"], record["event_times"]
    kind, column = next(iter(record["payload"].items()))
    n = len(times) // 8
    width = 4 if kind == "symbols" else len(column) // max(n, 1)
    if (len(ids), len(times), len(column)) != (16 * n, 8 * n, width * n):
        detail = f"columns of {len(ids)} bytes of ids, {len(times)} of times and {len(column)} of {kind}"
        raise RejectError(Reason.MALFORMED, detail, target)
    return _misfit_of_symbol(target) if kind == "symbols" else _misfit_of_bits(target, width)


def _misfit_of_bits(target: Target, width: int) -> Misfit | None:
    if target.bits_width is None:
        return Reason.WRONG_PAYLOAD, f"{width} bytes of bits, but {target.spec.mechanism.name} reports a symbol"
    if width != target.bits_width:
        return Reason.WRONG_LENGTH, f"{width} bytes of bits, not {target.bits_width}"
    return None


def _misfit_of_symbol(target: Target) -> Misfit | None:
    if target.bits_width is None:
        return None
    return Reason.WRONG_PAYLOAD, f"a symbol, but {target.spec.mechanism.name} reports bits"


def from_reports(target: Target, misfit: Misfit | None, reports: list[Record]) -> ParsedReports:
    """Make columns of single reports of one misfit, or none. Payloads that do not fit are left out."""
    payloads: Payloads
    if misfit is not None:
        payloads = np.zeros(len(reports), dtype=np.uint32)
    elif target.bits_width is None:
        payloads = np.array([record["payload"] for _, record in reports], dtype=np.uint32)
    else:
        joined = b"".join([record["payload"] for _, record in reports])
        payloads = np.frombuffer(joined, np.uint8).reshape(-1, target.bits_width)
    return ParsedReports(
        target,
        np.array([index for index, _ in reports], dtype=np.intp),
        False,
        np.frombuffer(b"".join([record["report_id"] for _, record in reports]), np.uint64).reshape(-1, 2),
        np.array([record["event_time"] for _, record in reports], dtype=np.int64),
        payloads,
        misfit,
    )


def from_batches(target: Target, misfit: Misfit | None, batches: list[Record]) -> ParsedReports:
    """Join the columns of batches of one misfit, or none, so that to check all costs little more than to check one."""
    times = np.frombuffer(b"".join([record["event_times"] for _, record in batches]), np.int64)
    column = b"".join([next(iter(record["payload"].values())) for _, record in batches])
    payloads: Payloads
    if "symbols" in batches[0][1]["payload"]:
        payloads = np.frombuffer(column, np.uint32)
    else:
        payloads = np.frombuffer(column, np.uint8).reshape(len(times), len(column) // max(len(times), 1))
    return ParsedReports(
        target,
        np.repeat(
            np.array([index for index, _ in batches], dtype=np.intp),
            [len(record["event_times"]) // 8 for _, record in batches],
        ),
        True,
        np.frombuffer(b"".join([record["report_ids"] for _, record in batches]), np.uint64).reshape(-1, 2),
        times,
        payloads,
        misfit,
    )
