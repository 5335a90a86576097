"""Columnar encoding: thousands of reports as bytes at once, without a Python object for each field.

The mirror of ``transforms.columnar``, and for whoever holds many reports: a simulation, a gateway, a shuffler. A
device has one report and ``schemas.records.Report.encode``, the reference.
"""

import numpy as np
import numpy.typing as npt

from mechanisms.mechanism import Payloads
from schemas.records import ReportBatch
from transforms.columnar import Layout
from transforms.columns import ReportIds, Times

Varints = npt.NDArray[np.uint64]

_ID_SIZE = 16
#: Avro's int has 32 bits, one of them the sign.
_MAX_SYMBOL = (1 << 31) - 1
#: Zigzag values from the k-th bound on take more than k + 1 bytes.
_WIDTH_BOUNDS = np.array([1 << 7 * width for width in range(1, 10)], dtype=np.uint64)


def encode_columns(layout: Layout, report_ids: ReportIds, event_times: Times, payloads: Payloads) -> list[bytes]:
    """Encode each of n reports as a framed ``Report`` message of its own.

    Args:
        layout: What stands around the fields: the writer's schema, collection, version and kind of payload.
        report_ids: Shape (n, 2): the 16 bytes of each id as two little-endian words.
        event_times: Shape (n,): milliseconds since 1970-01-01 UTC.
        payloads: Shape (n,) for symbols, (n, ``layout.bits_width``) for packed bits.

    Returns:
        The messages in the order of the columns, each equal to what ``schemas.records.Report.encode`` returns.

    Raises:
        ValueError: if the payloads do not fit the layout, or a symbol is more than an Avro int.
    """
    n = len(event_times)
    if layout.bits_width is None:
        if payloads.shape != (n,) or payloads.max(initial=0) > _MAX_SYMBOL:
            raise ValueError(f"payloads of shape {payloads.shape} are not {n} symbols of at most {_MAX_SYMBOL}")
        symbols = payloads.astype(np.uint64) << np.uint64(1)
    else:
        if payloads.shape != (n, layout.bits_width):
            raise ValueError(f"payloads of shape {payloads.shape} are not {n} rows of {layout.bits_width} bytes")
        symbols = np.zeros(n, dtype=np.uint64)
    times = ((event_times << 1) ^ (event_times >> 63)).view(np.uint64)
    time_widths, symbol_widths = _varint_widths(times), _varint_widths(symbols)
    before, between = _as_bytes(layout.prefix), _as_bytes(layout.payload_prefix)
    ids = np.ascontiguousarray(report_ids).view(np.uint8)
    messages = np.empty(n, dtype=np.object_)
    # Messages of one shape are rows of a matrix in which every field stands at a fixed column.
    shapes = time_widths * 16 + symbol_widths
    for shape in np.unique(shapes).tolist():
        rows = np.flatnonzero(shapes == shape)
        time_width, symbol_width = divmod(shape, 16)
        if layout.bits_width is None:
            payload = _write_varints(symbols[rows], symbol_width)
        else:
            payload = payloads[rows].view(np.uint8)
        fields = (before, ids[rows], _write_varints(times[rows], time_width), between, payload)
        length = sum(field.shape[-1] for field in fields)
        matrix = np.empty((len(rows), length), dtype=np.uint8)
        at = 0
        for field in fields:
            matrix[:, at : at + field.shape[-1]] = field
            at += field.shape[-1]
        messages[rows] = matrix.view(f"V{length}").ravel().tolist()
    encoded: list[bytes] = messages.tolist()
    return encoded


def encode_batch(collection: str, version: int, report_ids: ReportIds, event_times: Times, payloads: Payloads) -> bytes:
    """Encode n reports as one framed ``ReportBatch`` message; the columns are those of ``encode_columns``.

    Raises:
        ValueError: if the columns differ in length.
    """
    if not len(report_ids) == len(event_times) == len(payloads):
        raise ValueError(f"columns of {len(report_ids)}, {len(event_times)} and {len(payloads)} reports")
    ids, times, column = report_ids.tobytes(), event_times.tobytes(), payloads.tobytes()
    if payloads.ndim == 1:
        return ReportBatch(collection, version, ids, times, symbols=column).encode()
    return ReportBatch(collection, version, ids, times, bits=column).encode()


def _varint_widths(values: Varints) -> npt.NDArray[np.intp]:
    """How many bytes each value takes as a varint."""
    return np.searchsorted(_WIDTH_BOUNDS, values, side="right") + 1


def _write_varints(values: Varints, width: int) -> npt.NDArray[np.uint8]:
    """Write values that all take ``width`` bytes as rows of a matrix: 7 bits a byte, low bits first."""
    shifts = np.arange(0, 7 * width, 7, dtype=np.uint64)
    septets = ((values[:, np.newaxis] >> shifts) & np.uint64(0x7F)).astype(np.uint8)
    septets[:, :-1] |= 0x80
    return septets


def _as_bytes(data: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(data, dtype=np.uint8)
