"""Files of late and rejected reports, one of a bundle and source; a stream that is read again gives the same."""

import hashlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from uldp.collector.columns import MixedColumns
from uldp.schemas.codec.packed import message_bytes
from uldp.schemas.places import numbered, numbers_in, runs_of
from uldp.schemas.records import NO_ATTRIBUTES, Message
from uldp.schemas.rejected import Rejected, joined_rejected
from uldp.transforms.io.durable_files import container_bytes, digest_of, encode_record
from uldp.transforms.io.folders import IDS, SOURCE_DIGITS
from uldp.transforms.io.results.filing import File, Filing, JoinedFiling
from uldp.transforms.io.results.signing import line_of_file
from uldp.transforms.io.stored_files import StoredFile, numbers_of

#: No report is smaller, so that nothing is worth a replay of messages that are. And data that takes a fiftieth when
#: compressed is not that of devices, whose ids are random. Of such data a file keeps that many records in full for each
#: reason, and so many bytes of them.
SAMPLE, SAMPLE_BYTES, RARE_RATIO = 100, 1 << 16, 50
#: The fewest bytes of a report in a message of many.
REPORT_BYTES = 28
#: A record of many messages has about so many bytes.
PART_BYTES = 1 << 20


def parts(record: Rejected) -> Iterator[Rejected]:
    """Cut a record of many messages into records of at most ``PART_BYTES``, because a reader holds one as a whole."""
    if len(record.bodies) < 2 or record.nbytes <= PART_BYTES:
        yield record
        return
    ends = np.cumsum(np.fromiter(map(len, record.bodies), np.int64, len(record.bodies)))
    numbers = numbers_in(record.place[1])
    for of_part in np.split(numbers, np.flatnonzero(np.diff(ends // PART_BYTES)) + 1):
        yield record.at(runs_of(of_part))


def sampled(records: Iterable[Rejected], *, smaller_than: int) -> list[Rejected]:
    """Keep messages of one source, but of those with fewer bytes one in full for each reason; count the others."""
    ordered = sorted(records, key=lambda each: (each.place, each.reason, each.bodies))
    seen: Counter[str] = Counter()
    nbytes: Counter[str] = Counter()
    full, counted = [], []
    for record in ordered:
        runs = record.place[1]
        if not runs:
            full.append(record)
            continue
        sizes = np.fromiter(map(len, record.bodies), np.int64, len(record.bodies))
        before = nbytes[record.reason] + np.cumsum(sizes)
        few = (seen[record.reason] + np.arange(len(sizes)) < SAMPLE) & (before <= np.maximum(SAMPLE_BYTES, sizes))
        seen[record.reason] += len(sizes)
        nbytes[record.reason] += int(sizes.sum())
        whole = few | (sizes >= smaller_than)
        if len(whole) and whole.all():
            full.append(record)
        elif not whole.any():
            counted.append(_counted(record))
        else:
            numbers = numbers_in(runs)
            full.append(record.at(runs_of(numbers[whole])))
            counted.append(_counted(record.at(runs_of(numbers[~whole]))))
    return sorted([*full, *joined_rejected(counted)], key=lambda each: (each.place, each.reason, each.bodies))


def _counted(record: Rejected) -> Rejected:
    return replace(record, bodies=(), publish_times=record.publish_times[:1], attributes=NO_ATTRIBUTES, attempt=1)


#: About what Python adds to a body in a record, and to a run.
BODY_OVERHEAD, RUN_OVERHEAD = 48, 128


class LateFiling(Filing[Message, Message]):
    """Files messages that hold late reports, those of one source together."""

    def add(self, message: Message) -> Iterator[File]:
        found = numbered(message.source)
        yield from self.hold(found[0] if found else "", message, message_bytes(message))

    def files_of(self, source: str, messages: Sequence[Message]) -> Iterator[File]:
        ordered = sorted(messages, key=lambda each: (numbered(each.source) or ("", 0), each.source, each.data))
        encoded = [encode_record("message", each.to_avro()) for each in ordered]
        places = [each.source.encode("utf-8", "surrogatepass") for each in ordered]
        stored = StoredFile(_file_name(source, [*encoded, *places]), source, numbers_of(ordered))
        yield _file("late", stored, "message", encoded)

    def line_of_file(self, file: File) -> bytes:
        return line_of_file(*file)


class RejectedFiling(Filing[Rejected, Rejected]):
    """Files rejected reports, those of one source and reason together."""

    def add(self, record: Rejected) -> Iterator[File]:
        source, runs = record.place
        # Of many messages, the data is less than what Python adds to each.
        nbytes = record.nbytes + BODY_OVERHEAD * len(record.bodies) + RUN_OVERHEAD * len(record.runs)
        yield from self.hold(source if runs else "", record, nbytes)

    def files_of(self, source: str, records: Sequence[Rejected]) -> Iterator[File]:
        """Name records by places, reasons and bodies, by which versions agree; without a place, by time too."""
        sample = sampled(joined_rejected(records), smaller_than=REPORT_BYTES)
        file = _rejected_file(source, sample)
        if RARE_RATIO * len(file.content) < sum(sum(map(len, each.bodies)) for each in sample):
            file = _rejected_file(source, sampled(sample, smaller_than=sys.maxsize))
        yield file

    def line_of_file(self, file: File) -> bytes:
        return line_of_file(*file)


def _identity(record: Rejected) -> bytes:
    time = "" if record.place[1] else record.publish_time
    known = f"{record.source} {record.runs} {record.reason} {record.stored} {record.reports} {time} "
    lengths = np.fromiter(map(len, record.bodies), np.int64, len(record.bodies)).tobytes()
    return b"".join([known.encode("utf-8", "surrogatepass"), lengths, *record.bodies])


def _rejected_file(source: str, records: Sequence[Rejected]) -> File:
    stored = StoredFile(_file_name(source, [_identity(each) for each in records]))
    encoded = [encode_record("rejected", part.to_avro()) for each in records for part in parts(each)]
    return _file("rejected", stored, "rejected", encoded)


def _file(folder: str, stored: StoredFile, schema: str, encoded: Sequence[bytes]) -> File:
    content = container_bytes(schema, encoded, deflated=True, metadata=stored.to_metadata())
    return File(f"{folder}/{stored.name}.avro", content)


def _file_name(source: str, identity: Sequence[bytes]) -> str:
    """Return a name of two halves: what records of a source are from, and what tells them from others of it."""
    of_source = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:SOURCE_DIGITS]
    return of_source + digest_of(identity).hex()[:SOURCE_DIGITS]


#: The ids of a record, which take 64 kB.
_IDS = 1 << 12


class IdsFiling(JoinedFiling[MixedColumns]):
    """Files the ids of the reports of a bundle together, those of a time slice in records of their own.

    By these alone two folders of results show that they share no report. A bundle that is tried again may write its ids
    again, in other files: the ids of a slice are a set, so that changes nothing.
    """

    folder, schema = IDS, "ids"

    def values_of(self, record: MixedColumns) -> Iterator[Mapping[str, Any]]:
        for part in record:
            order = np.argsort(part.slices, kind="stable")
            slices, ids = part.slices[order], part.report_ids[order]
            starts, firsts = np.unique(slices, return_index=True)
            for start, of_slice in zip(starts.tolist(), np.split(ids, firsts[1:]), strict=True):
                for cut in range(0, len(of_slice), _IDS):
                    yield {
                        "collection": part.collection,
                        "version": part.version,
                        "slice": start,
                        "ids": of_slice[cut : cut + _IDS].astype("<u8").tobytes(),
                    }
