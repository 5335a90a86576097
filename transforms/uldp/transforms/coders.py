"""Coders of the elements between the steps of ``Aggregate``: packed bytes, never pickles. Importing registers them."""

import io
import struct
from collections.abc import Callable, Mapping
from itertools import accumulate, chain, pairwise
from operator import itemgetter
from typing import Any, Generic, TypeVar

import fastavro
import numpy as np
from apache_beam.coders import Coder, registry

from uldp.collector.columns import MixedColumns, ReportColumns
from uldp.collector.origins import Origins
from uldp.collector.partial import NUMBERS, Partial
from uldp.collector.signals import SenderCounts
from uldp.mechanisms.protocol.cells import Cells, SparseCells, as_dense, as_sparse, smallest
from uldp.schemas.arrays import Counts
from uldp.schemas.errors import DataError
from uldp.schemas.estimate import Estimate
from uldp.schemas.framing import load_schema
from uldp.schemas.records import Message, Missing
from uldp.schemas.rejected import Rejected
from uldp.schemas.statistic import Statistic, itemsize_of

#: A record that knows its Avro form.
T = TypeVar("T", Statistic, Estimate, Rejected, Missing)


class StateLayoutError(DataError):
    """Another version of this software wrote the state, in a layout that this version does not know."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"{found}; start the job from no savepoint, or with the version that wrote this one: see docs/runbook.md"
        )


class DeterministicCoder(Coder):
    """Equal values have equal bytes."""

    def is_deterministic(self) -> bool:
        return True


class AvroCoder(DeterministicCoder, Generic[T]):
    """Encodes a record as the Avro body that its shipped schema describes."""

    schema: str
    read: Callable[[Mapping[str, Any]], T]

    def encode(self, value: T) -> bytes:
        """Write the body, without a header, because both ends are this job."""
        out = io.BytesIO()
        fastavro.schemaless_writer(out, load_schema(self.schema), value.to_avro())
        return out.getvalue()

    def decode(self, encoded: bytes) -> T:
        value = fastavro.schemaless_reader(io.BytesIO(encoded), load_schema(self.schema), None)
        assert isinstance(value, dict)
        return type(self).read(value)


class StatisticCoder(AvroCoder[Statistic]):
    """``statistic.avsc``."""

    schema = "statistic"
    read = Statistic.from_avro

    def estimate_size(self, value: Statistic) -> int:
        return itemsize_of(value.cells) * len(value.cells)


class EstimateCoder(AvroCoder[Estimate]):
    """``estimate.avsc``."""

    schema = "estimate"
    read = Estimate.from_avro

    def estimate_size(self, value: Estimate) -> int:
        return sum(array.nbytes for table in value.tables for array in table.arrays.values())


class RejectedCoder(AvroCoder[Rejected]):
    """``rejected.avsc``."""

    schema = "rejected"
    read = Rejected.from_avro


class MissingCoder(AvroCoder[Missing]):
    """``missing.avsc``."""

    schema = "missing"
    read = Missing.from_avro


class MessageCoder(DeterministicCoder):
    """``message.avsc``, then the position in the source, which a message on disk does not contain."""

    def encode(self, value: Message) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, load_schema("message"), value.to_avro())
        return out.getvalue() + value.source.encode()

    def decode(self, encoded: bytes) -> Message:
        body = io.BytesIO(encoded)
        value = fastavro.schemaless_reader(body, load_schema("message"), None)
        assert isinstance(value, dict)
        return Message(**value, source=body.read().decode())


class ReportColumnsCoder(DeterministicCoder):
    """Raw little-endian columns behind a small header; a time slice that all share is written once."""

    _HEADER = struct.Struct("<HIIBII")
    _DTYPES: tuple[type[np.uint8] | type[np.uint32], ...] = (np.uint8, np.uint32)
    #: The bit of the kind of payload that says that origins follow.
    _ORIGINS = 0x80

    def encode(self, value: ReportColumns) -> bytes:
        return b"".join(self.pieces(value))

    def pieces(self, value: ReportColumns) -> list[Any]:
        """Return the bytes to write, as bytes and as arrays of which no copy is made."""
        name = value.collection.encode()
        width = value.payloads.shape[1] if value.payloads.ndim == 2 else 0
        kind = self._DTYPES.index(value.payloads.dtype.type)
        slices = value.slices[:1] if len(value) and (value.slices == value.slices[0]).all() else value.slices
        columns = value.report_ids, slices, value.payloads, value.signals
        found = [] if value.origins is None else value.origins.pieces()
        kind |= self._ORIGINS if found else 0
        head = self._HEADER.pack(len(name), value.version, len(value), kind, width, len(slices))
        return [head, name, *map(np.ascontiguousarray, columns), *found]

    def decode(self, encoded: bytes) -> ReportColumns:
        """Read the columns; all but slices that were written once are views of ``encoded``."""
        return self.read(encoded, 0, len(encoded))

    def read(self, encoded: bytes, start: int, end: int) -> ReportColumns:
        """Read the columns that are encoded from ``start`` to ``end``."""
        name_length, version, n, kind, width, k = self._HEADER.unpack_from(encoded, start)
        at, has_origins, kind = start + self._HEADER.size + name_length, kind & self._ORIGINS, kind & ~self._ORIGINS
        name = encoded[start + self._HEADER.size : at].decode()
        ids = np.frombuffer(encoded, np.uint64, 2 * n, at).reshape(n, 2)
        slices = np.frombuffer(encoded, np.int64, k, at + 16 * n)
        payloads = np.frombuffer(encoded, self._DTYPES[kind], n * max(width, 1), at + 16 * n + 8 * k)
        at += 16 * n + 8 * k + payloads.nbytes
        signals = np.frombuffer(encoded, np.uint8, n, at)
        if k < n:
            slices = np.full(n, slices[0])
        origins = Origins.read(encoded[at + n : end], n) if has_origins else None
        payloads = payloads.reshape(n, width) if width else payloads
        return ReportColumns(name, version, ids, slices, payloads, signals, origins)

    def estimate_size(self, value: ReportColumns) -> int:
        """Return the largest encoded size without encoding; Beam would encode the value to sample its size."""
        return self._HEADER.size + len(value.collection.encode()) + value.nbytes


class MixedColumnsCoder(DeterministicCoder):
    """The number of parts, the encoded size of each, and the parts; see ``ReportColumnsCoder``."""

    _PART = ReportColumnsCoder()

    def encode(self, value: MixedColumns) -> bytes:
        parts = list(map(self._PART.pieces, value))
        sizes = [sum(memoryview(piece).nbytes for piece in pieces) for pieces in parts]
        return b"".join((struct.pack(f"<I{len(sizes)}I", len(sizes), *sizes), *chain.from_iterable(parts)))

    def decode(self, encoded: bytes) -> MixedColumns:
        (k,) = struct.unpack_from("<I", encoded)
        ends = accumulate(struct.unpack_from(f"<{k}I", encoded, 4), initial=4 + 4 * k)
        return MixedColumns(tuple(self._PART.read(encoded, start, end) for start, end in pairwise(ends)))

    def estimate_size(self, value: MixedColumns) -> int:
        return 4 + sum(4 + self._PART.estimate_size(part) for part in value)


class PartialCoder(DeterministicCoder):
    """Encodes a version, then slots, numbers, cells, sketches of payloads, senders and the ends of windows.

    The bytes are state: an updated job reads the bytes of the job before it. A changed layout needs a new version.

    Numbers and cells take as few bytes as the largest of them needs: a thousand collections have ten thousand windows,
    and a runner copies their bytes several times.
    """

    _VERSION = 4
    _HEAD = struct.Struct("<BII")
    _SENDERS = struct.Struct("<qI")
    _END = struct.Struct("<q")
    #: The bit of the number of slots with senders that says that there are sketches.
    _SKETCHED = 1 << 31

    def encode(self, value: Partial) -> bytes:
        sketched = 0 if value.payloads is None else self._SKETCHED
        out = bytearray(self._HEAD.pack(self._VERSION, len(value), len(value.senders) | sketched))
        out += value.slots.tobytes()
        _write_counts(out, smallest(as_sparse(value.numbers.reshape(-1))))
        _write_counts(out, value.cells)
        if value.payloads is not None:
            _write_counts(out, value.payloads)
        for slot, senders in sorted(value.senders.items(), key=itemgetter(0)):
            out += self._SENDERS.pack(slot, len(senders.digests))
            out += senders.digests.tobytes() + senders.reports.tobytes()
        for slot, ends in sorted(value.ends.items(), key=itemgetter(0)):
            out += self._END.pack(slot)
            _write_counts(out, ends)
        return bytes(out)

    def decode(self, encoded: bytes) -> Partial:
        """Read the parts back; StateLayoutError if another version of this software wrote the bytes."""
        if encoded[0] != self._VERSION:
            raise StateLayoutError(
                f"another version of uldp wrote these partial counts: layout {encoded[0]}, expected {self._VERSION}"
            )
        _, k, of_senders = self._HEAD.unpack_from(encoded)
        slots = np.frombuffer(encoded, np.int64, k, self._HEAD.size)
        numbers, at = _read_counts(encoded, self._HEAD.size + 8 * k)
        cells, at = _read_counts(encoded, at)
        payloads, at = _read_counts(encoded, at) if of_senders & self._SKETCHED else (None, at)
        senders = {}
        for _ in range(of_senders & ~self._SKETCHED):
            slot, n = self._SENDERS.unpack_from(encoded, at)
            at += self._SENDERS.size
            digests = np.frombuffer(encoded, np.uint64, n, at)
            senders[slot] = SenderCounts(digests, np.frombuffer(encoded, np.int64, n, at + 8 * n))
            at += 16 * n
        ends = {}
        while at < len(encoded):
            (slot,) = self._END.unpack_from(encoded, at)
            counts, at = _read_counts(encoded, at + self._END.size)
            assert counts is not None
            ends[slot] = as_dense(counts)
        assert numbers is not None
        return Partial(slots, as_dense(numbers).reshape(k, NUMBERS), cells, senders, ends, payloads)

    def estimate_size(self, value: Partial) -> int:
        counts = sum(len(_given(cells)) for cells in (value.cells, value.payloads) if cells is not None)
        return value.slots.nbytes + value.numbers.size + counts


_NONE, _DENSE, _SPARSE = range(3)
_COUNTS_HEAD = struct.Struct("<BBII")


def _given(counts: Cells) -> Counts:
    """Return the counts that are written."""
    return counts.values if isinstance(counts, SparseCells) else counts


def _write_counts(out: bytearray, counts: Cells | None) -> None:
    """Append a kind, bytes of a count, numbers of counts and of written ones, symbols if sparse, and counts."""
    if counts is None:
        out += _COUNTS_HEAD.pack(_NONE, 0, 0, 0)
        return
    given = _given(counts)
    itemsize = itemsize_of(given)
    if isinstance(counts, SparseCells):
        out += _COUNTS_HEAD.pack(_SPARSE, itemsize, counts.size, len(given)) + counts.indices.astype("<u4").tobytes()
    else:
        out += _COUNTS_HEAD.pack(_DENSE, itemsize, len(given), len(given))
    out += given.astype(f"<i{itemsize}", copy=False).tobytes()


def _read_counts(encoded: bytes, at: int) -> tuple[Cells | None, int]:
    """Read the counts that ``_write_counts`` wrote at an offset; return them and the offset at which they end."""
    kind, itemsize, size, written = _COUNTS_HEAD.unpack_from(encoded, at)
    at += _COUNTS_HEAD.size
    if kind == _NONE:
        return None, at
    values_at = at + 4 * written if kind == _SPARSE else at
    values = np.frombuffer(encoded, f"<i{itemsize}", written, values_at).astype(np.int64, copy=False)
    end = values_at + itemsize * written
    if kind == _DENSE:
        return values, end
    return SparseCells(size, np.frombuffer(encoded, np.uint32, written, at).astype(np.int64), values), end


for _type, _coder in (
    (Statistic, StatisticCoder),
    (Estimate, EstimateCoder),
    (Rejected, RejectedCoder),
    (Missing, MissingCoder),
    (Message, MessageCoder),
    (MixedColumns, MixedColumnsCoder),
    (Partial, PartialCoder),
):
    registry.register_coder(_type, _coder)
