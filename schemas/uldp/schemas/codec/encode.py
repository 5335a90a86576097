"""Columnar encoding: encode thousands of reports at once, without a Python object for each field.

This module is the inverse of ``uldp.schemas.codec.columnar``. It serves programs that hold many reports: a simulation,
a gateway, a shuffler. A device has one report and uses ``uldp.schemas.records.Report.encode``, the reference.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from uldp.schemas.arrays import Bytes, Payloads, ReportIds, Rows, Times
from uldp.schemas.codec.columnar import Layout
from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.records import ReportBatch

Varints = npt.NDArray[np.uint64]

#: Avro's int has 32 bits, including one sign bit.
_MAX_SYMBOL = (1 << 31) - 1
# A byte of a varint holds 7 bits, low bits first, and a flag for a following byte.
_SEPTET_BITS, _SEPTET, _MORE = np.uint64(7), np.uint64(0x7F), np.uint64(0x80)
_NO_ATTRIBUTES = b"\x00"


def encode_columns(layout: Layout, report_ids: ReportIds, event_times: Times, payloads: Payloads) -> list[bytes]:
    """Encode each of n reports as a framed ``Report`` message, in the order of the columns, as ``Report.encode`` does.

    Payloads have the shape (n,) for symbols, (n, ``layout.width``) for packed bits. ValueError if they do not fit the
    layout, or a symbol exceeds an Avro int.
    """
    buffer, ends = _join_fields(_report_fields(layout, report_ids, event_times, payloads), len(event_times))
    joined = buffer.tobytes()
    return [joined[start:end] for start, end in pairwise([0, *ends.tolist()])]


def encode_messages(
    layout: Layout, report_ids: ReportIds, event_times: Times, payloads: Payloads, publish_times: Times
) -> EncodedMessages:
    """Encode each of n reports as the record of a message, published at ``publish_times``; see ``encode_columns``."""
    n = len(event_times)
    fields = _report_fields(layout, report_ids, event_times, payloads)
    lengths = _varints(_zigzag(np.broadcast_to(sum(field.widths for field in fields), n)))
    fields = [lengths, *fields, _constant(_NO_ATTRIBUTES), _varints(_zigzag(publish_times))]
    return EncodedMessages(*_join_fields(fields, n), publish_times)


def encode_batch(collection: str, version: int, report_ids: ReportIds, event_times: Times, payloads: Payloads) -> bytes:
    """Encode n reports as a framed ``ReportBatch``, as ``encode_columns``; ValueError if columns differ in length."""
    if not len(report_ids) == len(event_times) == len(payloads):
        raise ValueError(
            f"columns differ in length: {len(report_ids)} ids, {len(event_times)} times and {len(payloads)} payloads"
        )
    ids, times, column = report_ids.tobytes(), event_times.tobytes(), payloads.tobytes()
    if payloads.ndim == 1:
        return ReportBatch(collection, version, ids, times, symbols=column).encode()
    return ReportBatch(collection, version, ids, times, bits=column).encode()


class _Field(NamedTuple):
    """A field of n messages: the first ``width`` bytes of each row. One row, or one width, applies to all messages."""

    rows: Bytes
    widths: Rows


def _report_fields(layout: Layout, report_ids: ReportIds, event_times: Times, payloads: Payloads) -> list[_Field]:
    """Encode the fields of n messages, and the constant bytes before and between the fields."""
    n = len(event_times)
    if layout.width is None:
        if payloads.shape != (n,) or payloads.max(initial=0) > _MAX_SYMBOL:
            raise ValueError(f"payloads of shape {payloads.shape} are not {n} symbols of at most {_MAX_SYMBOL}")
        payload = _varints(payloads.astype(np.uint64) << np.uint64(1))
    else:
        if payloads.shape != (n, layout.width):
            raise ValueError(f"payloads of shape {payloads.shape} are not {n} rows of {layout.width} bytes")
        payload = _matrix(payloads.view(np.uint8))
    ids = _matrix(np.ascontiguousarray(report_ids).view(np.uint8))
    between = _constant(layout.payload_prefix)
    return [_constant(layout.prefix), ids, _varints(_zigzag(event_times)), between, payload]


def _constant(data: bytes) -> _Field:
    return _matrix(np.frombuffer(data, dtype=np.uint8)[np.newaxis])


def _matrix(rows: Bytes) -> _Field:
    return _Field(rows, np.array([rows.shape[1]]))


def _zigzag(values: Times) -> Varints:
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def _varints(values: Varints) -> _Field:
    columns, widths = [], np.ones(len(values), dtype=np.intp)
    while (more := values > _SEPTET).any():
        columns.append((values & _SEPTET | more * _MORE).astype(np.uint8))
        widths += more
        values = values >> _SEPTET_BITS
    columns.append(values.astype(np.uint8))
    return _Field(np.column_stack(columns), widths)


def _join_fields(fields: Sequence[_Field], n: int) -> tuple[Bytes, Rows]:
    """Join the fields of each of n messages; return the bytes of all, and the offset at which each message ends."""
    lengths = np.broadcast_to(sum(field.widths for field in fields), n)
    ends = np.cumsum(lengths)
    buffer = np.empty(lengths.sum(), dtype=np.uint8)
    at = ends - lengths
    for rows, widths in fields if n else ():
        # NumPy copies all rows of one width at once, as elements of one type, to arbitrary offsets.
        for width in np.flatnonzero(np.bincount(widths)).tolist():
            chosen = slice(None) if len(widths) == 1 else np.flatnonzero(widths == width)
            elements = np.ascontiguousarray(rows[chosen, :width]).view(f"V{width}")[:, 0]
            anywhere = np.ndarray(len(buffer) - width + 1, f"V{width}", buffer, strides=(1,))
            anywhere[at[chosen]] = elements
        at = at + widths
    return buffer, ends
