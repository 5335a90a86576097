"""How elements travel between stages: packed bytes, never pickles. Importing this module registers the coders."""

import io
import struct
from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import fastavro
import numpy as np
from apache_beam.coders import Coder
from apache_beam.coders.typecoders import registry

from schemas.framing import load_schema
from schemas.records import Accounting, Estimate, Message, Rejected, SupportCounts
from transforms.columns import PartialCounts, ReportColumns


class AvroRecord(Protocol):
    """A record that knows its Avro form."""

    def to_avro(self) -> dict[str, Any]:
        """Return the value that the record's schema describes."""


T = TypeVar("T", bound=AvroRecord)


class _Deterministic(Coder):
    """Equal values have equal bytes."""

    def is_deterministic(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


class AvroCoder(_Deterministic, Generic[T]):
    """A record as the body that its shipped schema describes."""

    schema: str
    read: Callable[[Mapping[str, Any]], T]

    def encode(self, value: T) -> bytes:
        """Write the body, without a header: both ends are this job."""
        out = io.BytesIO()
        fastavro.schemaless_writer(out, load_schema(self.schema), value.to_avro())
        return out.getvalue()

    def decode(self, encoded: bytes) -> T:
        """Read the body back."""
        value = fastavro.schemaless_reader(io.BytesIO(encoded), load_schema(self.schema), None)
        assert isinstance(value, dict)
        return type(self).read(value)


class SupportCountsCoder(AvroCoder[SupportCounts]):
    """``support_counts.avsc``."""

    schema = "support_counts"
    read = SupportCounts.from_avro


class EstimateCoder(AvroCoder[Estimate]):
    """``estimate.avsc``."""

    schema = "estimate"
    read = Estimate.from_avro


class RejectedCoder(AvroCoder[Rejected]):
    """``rejected.avsc``."""

    schema = "rejected"
    read = Rejected.from_avro


class MessageCoder(_Deterministic):
    """``message.avsc``, then the position in the source, which is no part of the message on disk."""

    def encode(self, value: Message) -> bytes:
        """Write the message and its position."""
        out = io.BytesIO()
        fastavro.schemaless_writer(out, load_schema("message"), value.to_avro())
        return out.getvalue() + value.source.encode()

    def decode(self, encoded: bytes) -> Message:
        """Read both back."""
        body = io.BytesIO(encoded)
        value = fastavro.schemaless_reader(body, load_schema("message"), None)
        assert isinstance(value, dict)
        return Message(**value, source=body.read().decode())


class ReportColumnsCoder(_Deterministic):
    """Raw little-endian columns behind a small header."""

    _HEADER = struct.Struct("<HIIBI")
    _DTYPES: tuple[type[np.uint8] | type[np.uint32], ...] = (np.uint8, np.uint32)

    def encode(self, value: ReportColumns) -> bytes:
        """Write the columns one after the other."""
        name = value.collection.encode()
        width = value.payloads.shape[1] if value.payloads.ndim == 2 else 0
        kind = self._DTYPES.index(value.payloads.dtype.type)
        return b"".join(
            (
                self._HEADER.pack(len(name), value.version, len(value), kind, width),
                name,
                value.report_ids.tobytes(),
                value.slices.tobytes(),
                value.payloads.tobytes(),
            )
        )

    def decode(self, encoded: bytes) -> ReportColumns:
        """Read the columns as views of ``encoded``, without a copy."""
        name_length, version, n, kind, width = self._HEADER.unpack_from(encoded)
        at = self._HEADER.size + name_length
        name = encoded[self._HEADER.size : at].decode()
        ids = np.frombuffer(encoded, np.uint64, 2 * n, at).reshape(n, 2)
        slices = np.frombuffer(encoded, np.int64, n, at + 16 * n)
        payloads = np.frombuffer(encoded, self._DTYPES[kind], n * max(width, 1), at + 24 * n)
        return ReportColumns(name, version, ids, slices, payloads.reshape(n, width) if width else payloads)

    def estimate_size(self, value: ReportColumns) -> int:
        """Return the encoded size without encoding, which Beam would do to sample it."""
        return self._HEADER.size + len(value.collection.encode()) + value.nbytes


class PartialCountsCoder(_Deterministic):
    """Five accounting numbers, then the counts as raw int64."""

    _ACCOUNTING = struct.Struct("<5q")

    def encode(self, value: PartialCounts) -> bytes:
        """Write accounting and counts."""
        a = value.accounting
        head = self._ACCOUNTING.pack(a.received, a.counted, a.duplicate, a.late, a.rejected)
        return head if value.counts is None else head + value.counts.tobytes()

    def decode(self, encoded: bytes) -> PartialCounts:
        """Read them back."""
        accounting = Accounting(*self._ACCOUNTING.unpack_from(encoded))
        if len(encoded) == self._ACCOUNTING.size:
            return PartialCounts(None, accounting)
        return PartialCounts(np.frombuffer(encoded, np.int64, -1, self._ACCOUNTING.size), accounting)


for _type, _coder in (
    (SupportCounts, SupportCountsCoder),
    (Estimate, EstimateCoder),
    (Rejected, RejectedCoder),
    (Message, MessageCoder),
    (ReportColumns, ReportColumnsCoder),
    (PartialCounts, PartialCountsCoder),
):
    registry.register_coder(_type, _coder)
