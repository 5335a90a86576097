"""Files of late and rejected reports: those of a bundle from one source in one file, whose name follows from them.

So a stream that is read again gives the same files, however its bundles are cut, if each source is read whole.
"""

import hashlib
import sys
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from uldp.schemas.codec.packed import message_bytes
from uldp.schemas.places import numbered
from uldp.schemas.records import Message
from uldp.schemas.rejected import Rejected, joined_rejected
from uldp.transforms.io.durable_files import container_bytes, digest_of, encode_record
from uldp.transforms.io.folders import SOURCE_DIGITS
from uldp.transforms.io.results.filing import File, Filing, Held
from uldp.transforms.io.results.sample import RARE_RATIO, REPORT_BYTES, parts, sampled
from uldp.transforms.io.results.signing import line_of_file
from uldp.transforms.io.stored_files import StoredFile, numbers_of

#: About what Python adds to a body in a record, and to a run.
BODY_OVERHEAD, RUN_OVERHEAD = 48, 128
#: A record.
R = TypeVar("R")


class SourceFiling(Filing[R]):
    """Files records by their source, below one folder."""

    folder: str

    def __init__(self) -> None:
        self._held: Held[R] = Held()

    @abstractmethod
    def source_of(self, record: R) -> str:
        """Return what the places of a record are numbered in; empty if they are not numbered."""

    @abstractmethod
    def nbytes_of(self, record: R) -> int:
        """Return about how many bytes a record takes."""

    @abstractmethod
    def file_of(self, source: str, records: Sequence[R]) -> tuple[StoredFile, bytes]:
        """Return what the header of a file of these records says, and its content."""

    def add(self, record: R) -> Iterator[File]:
        if self._held.add(self.source_of(record), record, self.nbytes_of(record)):
            yield from self.rest()

    def rest(self) -> Iterator[File]:
        for source, records in self._held.clear().items():
            stored, content = self.file_of(source, records)
            yield File(f"{self.folder}/{stored.name}.avro", content)

    def line_of_file(self, file: File) -> bytes:
        return line_of_file(*file)


class LateFiling(SourceFiling[Message]):
    """Files messages that hold late reports."""

    folder = "late"

    def source_of(self, message: Message) -> str:
        found = numbered(message.source)
        return found[0] if found else ""

    def nbytes_of(self, message: Message) -> int:
        return message_bytes(message)

    def file_of(self, source: str, messages: Sequence[Message]) -> tuple[StoredFile, bytes]:
        ordered = sorted(messages, key=lambda each: (numbered(each.source) or ("", 0), each.source, each.data))
        encoded = [encode_record("message", each.to_avro()) for each in ordered]
        places = [each.source.encode("utf-8", "surrogatepass") for each in ordered]
        stored = StoredFile(_file_name(source, [*encoded, *places]), source, numbers_of(ordered))
        return stored, container_bytes("message", encoded, deflated=True, metadata=stored.to_metadata())


class RejectedFiling(SourceFiling[Rejected]):
    """Files rejected reports, those of one reason together."""

    folder = "rejected"

    def source_of(self, record: Rejected) -> str:
        source, runs = record.place
        return source if runs else ""

    def nbytes_of(self, record: Rejected) -> int:
        """Return about what a record takes: of many messages, the data is less than what Python adds to each."""
        return record.nbytes + BODY_OVERHEAD * len(record.bodies) + RUN_OVERHEAD * len(record.runs)

    def file_of(self, source: str, records: Sequence[Rejected]) -> tuple[StoredFile, bytes]:
        """Name records by places, reasons and bodies, by which versions agree; without a place, by time too."""
        sample = sampled(joined_rejected(records), smaller_than=REPORT_BYTES)
        file, content = _rejected_file(source, sample)
        if RARE_RATIO * len(content) < sum(sum(map(len, each.bodies)) for each in sample):
            file, content = _rejected_file(source, sampled(sample, smaller_than=sys.maxsize))
        return file, content


def _identity(record: Rejected) -> bytes:
    time = "" if record.place[1] else record.publish_time
    known = f"{record.source} {record.runs} {record.reason} {record.stored} {record.reports} {time} "
    lengths = np.fromiter(map(len, record.bodies), np.int64, len(record.bodies)).tobytes()
    return b"".join([known.encode("utf-8", "surrogatepass"), lengths, *record.bodies])


def _rejected_file(source: str, records: Sequence[Rejected]) -> tuple[StoredFile, bytes]:
    stored = StoredFile(_file_name(source, [_identity(each) for each in records]))
    encoded = [encode_record("rejected", part.to_avro()) for each in records for part in parts(each)]
    return stored, container_bytes("rejected", encoded, deflated=True, metadata=stored.to_metadata())


def _file_name(source: str, identity: Sequence[bytes]) -> str:
    """Return a name of two halves: what records of a source are from, and what tells them from others of it."""
    of_source = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:SOURCE_DIGITS]
    return of_source + digest_of(identity).hex()[:SOURCE_DIGITS]
