"""Files of results: each file's name follows from its content, so that writing twice gives the same files.

The file of a pane is named by collection, version, window, revision and estimator. The number of late and rejected
reports is unknown in advance, so the sink collects them within a bundle and names the file by the digest of these
records. The same holds for panes that count no report, and for panes that count few, once a bundle has many of them: a
sender can name as many windows as it likes.
"""

import hashlib
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import apache_beam as beam
import numpy as np
from apache_beam.io.filesystems import FileSystems

from uldp.schemas.codec.packed import message_bytes
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneHeader, PaneKind
from uldp.schemas.places import numbered, numbers_in, runs_of
from uldp.schemas.records import NO_ATTRIBUTES, Message, Missing
from uldp.schemas.rejected import Rejected, joined_rejected
from uldp.schemas.statistic import Statistic, counts_to_avro
from uldp.transforms.aggregated import Aggregated
from uldp.transforms.io.durable_files import container_bytes, digest_of, encode_record, remove_file, write_files
from uldp.transforms.io.folders import COUNTS, FEW, MISSING, SOURCE_DIGITS, is_remote
from uldp.transforms.io.kept_files import KeptFile, numbers_of

#: The maximum number of records that a bundle holds for files of several records, such as late reports.
MAX_RECORDS = 10_000
#: The maximum bytes of these records, encoded; the last one may exceed them. With ``MAX_RECORDS``, this bounds the
#: memory of a bundle, whatever clients send.
MAX_BYTES = 8 << 20
#: Panes that count fewer reports may share a file. So a sender has to send 2,800 bytes for each window with files of
#: its own, which take 4,700 bytes if the domain is small.
FEW_REPORTS = 100
#: The fewest bytes of a report in a message of many.
REPORT_BYTES = 28
#: If a bundle has more panes of few reports than this, of one collection and estimator, they share a file. Bundles of
#: streams and of small backfills have no more, so that their files are named by window.
MAX_OWN_FILES = 32

#: A record of a pane.
P = TypeVar("P", bound=PaneHeader)
#: No report is smaller, so that nothing is worth a replay of messages that are. And data that takes a fiftieth when
#: compressed is not that of devices, whose ids are random. Of such data a file keeps that many records in full for each
#: reason, and so many bytes of them.
SAMPLE, SAMPLE_BYTES, RARE_RATIO = 100, 1 << 16, 50
#: About what Python adds to a body in a record, and to a run.
BODY_OVERHEAD, RUN_OVERHEAD = 48, 128
#: A record of many messages has about so many bytes.
PART_BYTES = 1 << 20
#: A folder, and the ending of the name of a file in it that several panes share.
SharedFile = tuple[str, str]


def window_folder(pane: PaneHeader) -> str:
    """Return the folder of a window's panes, below the folder of its kind of result."""
    start, end = (_stamp(moment) for moment in (pane.window_start, pane.window_end))
    return FileSystems.join(f"{pane.collection}-v{pane.version}", f"{start}--{end}")


def _stamp(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    fraction = f".{milliseconds % 1000:03d}" if milliseconds % 1000 else ""
    return f"{moment:%Y%m%dT%H%M%S}{fraction}Z"


def estimate_file(estimate: Estimate) -> tuple[str, bytes]:
    """Return the name of an estimate's file, below the results' folder, and its content."""
    return _estimate_name(estimate), container_bytes("estimate", [encode_record("estimate", estimate.to_avro())])


def _estimate_name(estimate: Estimate) -> str:
    name = f"{estimate.pane.revision:06d}.{estimate.estimator}.avro"
    return FileSystems.join("estimates", window_folder(estimate), name)


def statistic_file(pane: PaneHeader, kind: str = COUNTS) -> tuple[str, bytes]:
    """Return the name of the file of a pane's statistic, below a folder of results, and its content.

    Args:
        pane: A statistic, or a header alone.
        kind: ``COUNTS`` or ``FEW``.
    """
    content = container_bytes("statistic", [encode_record("statistic", counts_to_avro(pane))])
    return _statistic_name(pane, kind), content


def _statistic_name(pane: PaneHeader, kind: str) -> str:
    return FileSystems.join(kind, window_folder(pane), f"{pane.pane.revision:06d}.avro")


def shared_folder(kind: str, pane: PaneHeader) -> str:
    """Return the folder, below the results' folder, of files in which panes of a collection are together.

    Args:
        kind: ``COUNTS``, ``FEW`` or ``estimates``.
        pane: One of the panes.
    """
    return FileSystems.join(kind, f"{pane.collection}-v{pane.version}", "shared")


def kept_file(
    folder: str, encoded: Sequence[bytes], schema: str, ending: str = ".avro", *, deflated: bool = False
) -> tuple[str, bytes]:
    """Return the name of a file of several records, below the results' folder, and its content."""
    content = container_bytes(schema, encoded, deflated=deflated)
    return FileSystems.join(folder, f"{digest_of(encoded).hex()}{ending}"), content


@dataclass
class WriteResults(beam.PTransform[Any, None]):
    """Write all outputs of ``Aggregate`` below one folder, or those that are private below another one.

    Late and rejected reports hold whatever clients have sent, and the cells of windows of few reports may be those of
    single users, so only the owner may read their files.

    Attributes:
        out: The folder, on any of Beam's file systems.
        private: Another folder for late and rejected reports and for cells of few reports; None to write them below
            ``out`` too.
        newest_only: Whether to remove the file of a pane once the pane that supersedes it is written.
        written: Called in the worker for each file of late or rejected reports, with its name below the folder, once
            the file is there.
    """

    out: str
    private: str | None = None
    newest_only: bool = False
    written: Callable[[str], None] | None = None

    def expand(self, aggregated: Any) -> None:
        """Write each kind of result in a step of its own; takes ``Aggregated``."""
        assert isinstance(aggregated, Aggregated)
        private = self.private or self.out
        write_counts = _WriteStatisticFn(self.out, private, newest_only=self.newest_only)
        for records, label, write in (
            (aggregated.estimates, "WriteEstimates", _WriteEstimateFn(self.out, newest_only=self.newest_only)),
            (aggregated.counts, "WriteCounts", write_counts),
            (aggregated.late, "WriteLate", _WriteLateFn(private, self.written)),
            (aggregated.rejected, "WriteRejected", _WriteRejectedFn(private, self.written)),
            (aggregated.missing, "WriteMissing", _WriteMissingFn(self.out, "missing")),
        ):
            # Beam would look for an element that a writer puts out, for .4 s of each start of a job.
            _ = records | label >> beam.ParDo(write).with_output_types(type(None))


class _WriteFn(beam.DoFn):
    """Writes the files of a bundle together."""

    def __init__(self, out: str, *, private: bool = False) -> None:
        self._out, self._private = out, private

    def start_bundle(self) -> None:
        self._files: list[tuple[str, bytes]] = []
        self._file_bytes = 0

    def add(self, name: str, content: bytes) -> None:
        """Add a file, named below the folder, and write all files once they reach ``MAX_BYTES``."""
        self._files.append((FileSystems.join(self._out, name), content))
        self._file_bytes += len(content)
        if self._file_bytes >= MAX_BYTES:
            self.write_added()

    def finish_bundle(self) -> None:
        self.write_added()

    def write_added(self) -> None:
        """Write all files that were added."""
        if self._private and self._files and not is_remote(self._out):
            Path(self._out).mkdir(parents=True, exist_ok=True)  # the root itself may be for others too
        write_files(self._files, private=self._private)
        self._files, self._file_bytes = [], 0


class _WriteBundleFn(_WriteFn):
    """Joins records of a bundle in a file. It holds them encoded: their size is then known, and the objects freed.

    Attributes:
        deflated: Whether to compress the file.
    """

    deflated = False

    def __init__(self, out: str, schema: str, *, private: bool = False) -> None:
        super().__init__(out, private=private)
        self._schema = schema

    def start_bundle(self) -> None:
        super().start_bundle()
        self._encoded: dict[SharedFile, list[bytes]] = defaultdict(list)
        self._records = self._nbytes = 0

    def encode(self, record: Message | Rejected | Missing | Estimate | PaneHeader) -> bytes:
        """Return a record as it is in a block of the files."""
        return encode_record(self._schema, record.to_avro())

    def hold(self, folder: str, encoded: bytes, ending: str = ".avro") -> None:
        """Hold a record for a file of a folder, and add a file for each folder once the records reach a limit."""
        self._encoded[folder, ending].append(encoded)
        self._records += 1
        self._nbytes += len(encoded)
        if self._records >= MAX_RECORDS or self._nbytes >= MAX_BYTES:
            self._add_held()

    def finish_bundle(self) -> None:
        self._add_held()
        super().finish_bundle()

    def _add_held(self) -> None:
        """Add a file for each folder."""
        while self._encoded:
            (folder, ending), encoded = self._encoded.popitem()
            self.add(*kept_file(folder, encoded, self._schema, ending, deflated=self.deflated))
        self._records = self._nbytes = 0


class _WritePrivateFn(_WriteFn):
    """Writes late or rejected reports: those of a bundle from one source in one file, whose name follows from them.

    So a stream that is read again gives the same files, however its bundles are cut, if each source is read whole.

    Attributes:
        folder: The name of the folder.
    """

    folder: str

    def __init__(self, out: str, written: Callable[[str], None] | None = None) -> None:
        super().__init__(out, private=True)
        self._written = written

    def start_bundle(self) -> None:
        super().start_bundle()
        self._clear()

    def _clear(self) -> None:
        self._held: dict[str, list[Any]] = defaultdict(list)
        self._records = self._nbytes = 0

    def hold(self, source: str, record: Message | Rejected, records: int, nbytes: int) -> None:
        """Hold what counts as some records and bytes, and add a file for each source once they reach a limit."""
        self._held[source].append(record)
        self._records += records
        self._nbytes += nbytes
        if self._records >= MAX_RECORDS or self._nbytes >= MAX_BYTES:
            self._add_held()

    def finish_bundle(self) -> None:
        self._add_held()
        super().finish_bundle()

    def _add_held(self) -> None:
        held = self._held
        self._clear()
        for source, records in held.items():
            kept, content = self.file_of(source, records)
            self.add(FileSystems.join(self.folder, f"{kept.name}.avro"), content)

    def file_of(self, source: str, records: Sequence[Any]) -> tuple[KeptFile, bytes]:
        """Return what the header of a file of these records says, and its content."""
        raise NotImplementedError

    def write_added(self) -> None:
        """Write all files that were added, and say which."""
        names = [FileSystems.split(path)[1] for path, _ in self._files]
        super().write_added()
        if self._written is not None:
            for name in names:
                self._written(f"{self.folder}/{name}")


class _WriteLateFn(_WritePrivateFn):
    """Writes messages that hold late reports."""

    folder = "late"

    def process(self, message: Message) -> None:
        found = numbered(message.source)
        self.hold(found[0] if found else "", message, 1, message_bytes(message))

    def file_of(self, source: str, records: Sequence[Message]) -> tuple[KeptFile, bytes]:
        """Name messages by their places, their bytes and their times."""
        ordered = sorted(records, key=lambda each: (numbered(each.source) or ("", 0), each.source, each.data))
        encoded = [encode_record("message", each.to_avro()) for each in ordered]
        places = [each.source.encode("utf-8", "surrogatepass") for each in ordered]
        kept = KeptFile(_file_name(source, [*encoded, *places]), source, numbers_of(ordered))
        return kept, container_bytes("message", encoded, deflated=True, metadata=kept.to_metadata())


class _WriteRejectedFn(_WritePrivateFn):
    """Writes rejected reports, those of one reason together."""

    folder = "rejected"

    def process(self, record: Rejected) -> None:
        source, runs = record.place
        # Of many messages, the data takes less memory than what Python adds to each.
        nbytes = record.nbytes + BODY_OVERHEAD * len(record.bodies) + RUN_OVERHEAD * len(runs)
        self.hold(source if runs else "", record, 1, nbytes)

    def file_of(self, source: str, records: Sequence[Rejected]) -> tuple[KeptFile, bytes]:
        """Name records by places, reasons and bodies alone: another version of this software says the rest otherwise.

        Of messages without a place, the time is in the name too: two of equal data would replace each other.
        """
        kept = sampled(joined_rejected(records), smaller_than=REPORT_BYTES)
        file, content = _rejected_file(source, kept)
        if RARE_RATIO * len(content) < sum(sum(map(len, each.bodies)) for each in kept):
            file, content = _rejected_file(source, sampled(kept, smaller_than=sys.maxsize))
        return file, content


def _identity(record: Rejected) -> bytes:
    time = "" if record.place[1] else record.publish_time
    known = f"{record.source} {record.runs} {record.reason} {record.kept} {record.reports} {time} "
    lengths = np.fromiter(map(len, record.bodies), np.int64, len(record.bodies)).tobytes()
    return b"".join([known.encode("utf-8", "surrogatepass"), lengths, *record.bodies])


def _rejected_file(source: str, records: Sequence[Rejected]) -> tuple[KeptFile, bytes]:
    kept = KeptFile(_file_name(source, [_identity(each) for each in records]))
    encoded = [encode_record("rejected", part.to_avro()) for each in records for part in _parts(each)]
    return kept, container_bytes("rejected", encoded, deflated=True, metadata=kept.to_metadata())


def _file_name(source: str, identity: Sequence[bytes]) -> str:
    """Return a name of two halves: what records of a source are from, and what tells them from others of it."""
    of_source = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:SOURCE_DIGITS]
    return of_source + digest_of(identity).hex()[:SOURCE_DIGITS]


def _parts(record: Rejected) -> Iterator[Rejected]:
    """Cut a record of many messages into records of at most ``PART_BYTES``, because a reader holds one as a whole."""
    if len(record.bodies) < 2 or record.nbytes <= PART_BYTES:
        yield record
        return
    ends = np.cumsum(np.fromiter(map(len, record.bodies), np.int64, len(record.bodies)))
    numbers = numbers_in(record.place[1])
    for of_part in np.split(numbers, np.flatnonzero(np.diff(ends // PART_BYTES)) + 1):
        yield record.at(runs_of(of_part))


def sampled(records: Iterable[Rejected], *, smaller_than: int) -> list[Rejected]:
    """Keep all messages, but of those with less data only the first in full for each reason, and count the others.

    Args:
        records: Records of one source.
        smaller_than: The size of the data of which all messages are kept, in bytes.
    """
    ordered = sorted(records, key=lambda each: (each.place, each.reason, each.bodies))
    seen: Counter[str] = Counter()
    nbytes: Counter[str] = Counter()
    kept, counted = [], []
    for record in ordered:
        runs = record.place[1]
        if not runs:
            kept.append(record)
            continue
        sizes = np.fromiter(map(len, record.bodies), np.int64, len(record.bodies))
        before = nbytes[record.reason] + np.cumsum(sizes)
        few = (seen[record.reason] + np.arange(len(sizes)) < SAMPLE) & (before <= np.maximum(SAMPLE_BYTES, sizes))
        seen[record.reason] += len(sizes)
        nbytes[record.reason] += int(sizes.sum())
        whole = few | (sizes >= smaller_than)
        if len(whole) and whole.all():
            kept.append(record)
        elif not whole.any():
            counted.append(_counted(record))
        else:
            numbers = numbers_in(runs)
            kept.append(record.at(runs_of(numbers[whole])))
            counted.append(_counted(record.at(runs_of(numbers[~whole]))))
    return sorted([*kept, *joined_rejected(counted)], key=lambda each: (each.place, each.reason, each.bodies))


def _counted(record: Rejected) -> Rejected:
    return replace(record, bodies=(), publish_times=record.publish_times[:1], attributes=NO_ATTRIBUTES, attempt=1)


class _WriteMissingFn(_WriteBundleFn):
    """Writes records of missing messages. A restart may find and write a loss again; see ``missing_messages``."""

    def process(self, missing: Missing) -> None:
        self.hold(MISSING, self.encode(missing))


class _WritePaneFn(_WriteBundleFn):
    """Writes panes to files of their windows, but panes of few reports together if a bundle has many of these.

    So a sender that chooses event times has as many windows as it likes, but not as many files. A pane that takes more
    bytes than its reports is compressed, as shared files are: few reports leave equal figures for most values.
    """

    deflated = True

    def __init__(self, out: str, schema: str, *, private: bool = False, newest_only: bool = False) -> None:
        super().__init__(out, schema, private=private)
        self._newest_only = newest_only

    def start_bundle(self) -> None:
        super().start_bundle()
        self._superseded: list[str] = []
        self._small: dict[SharedFile, int] = defaultdict(int)
        self._waiting: dict[SharedFile, list[tuple[str, bytes]]] = defaultdict(list)
        self._waiting_bytes = 0

    def write(self, name: str, folder: str, pane: PaneHeader, ending: str = ".avro") -> None:
        """Write a pane to a file of its own, or to one with other panes of a folder."""
        encoded = self.encode(pane)
        # A job that is stopped replaces early panes, and so has to find their files.
        if pane.n >= FEW_REPORTS or (pane.n and pane.pane.kind is PaneKind.EARLY):
            larger = len(encoded) > REPORT_BYTES * pane.n
            self.add(name, container_bytes(self._schema, [encoded], deflated=larger))
        elif pane.n:
            self._write_small(name, (folder, ending), encoded)
        else:
            self.hold(folder, encoded, ending)

    def _write_small(self, name: str, shared: SharedFile, encoded: bytes) -> None:
        """Let a pane wait until the end of the bundle, or until the bundle has too many of them."""
        self._small[shared] += 1
        self._waiting[shared].append((name, encoded))
        self._waiting_bytes += len(encoded)
        if self._small[shared] > MAX_OWN_FILES:
            for _, waiting in self._waiting.pop(shared):
                self._waiting_bytes -= len(waiting)
                self.hold(shared[0], waiting, shared[1])
        elif self._waiting_bytes >= MAX_BYTES:
            self._add_waiting()

    def supersede(self, pane: P, name_of: Callable[[P], str]) -> None:
        """Remove the file of the pane before, if no pane but the newest is to stay, once the bundle is written.

        Of all earlier revisions it removes that one alone: this run has written it. A file of another revision may be
        of an earlier run of the job, and of a newer pane.
        """
        if self._newest_only and pane.supersedes is not None:
            before = replace(pane, pane=replace(pane.pane, revision=pane.supersedes.revision))
            self._superseded.append(FileSystems.join(self._out, name_of(before)))

    def finish_bundle(self) -> None:
        self._add_waiting()
        super().finish_bundle()
        for path in self._superseded:
            remove_file(path)

    def _add_waiting(self) -> None:
        """Add a file for each pane that waits."""
        while self._waiting:
            for name, encoded in self._waiting.popitem()[1]:
                self.add(name, container_bytes(self._schema, [encoded], deflated=True))
        self._waiting_bytes = 0


class _WriteEstimateFn(_WritePaneFn):
    def __init__(self, out: str, *, newest_only: bool = False) -> None:
        super().__init__(out, "estimate", newest_only=newest_only)

    def process(self, estimate: Estimate) -> None:
        self.supersede(estimate, _estimate_name)
        folder = shared_folder("estimates", estimate)
        self.write(_estimate_name(estimate), folder, estimate, f".{estimate.estimator}.avro")


class _WriteCellsFn(_WritePaneFn):
    """Writes statistics, or headers alone, to files of one kind."""

    def __init__(self, out: str, kind: str, *, private: bool = False, newest_only: bool = False) -> None:
        super().__init__(out, "statistic", private=private, newest_only=newest_only)
        self._kind = kind

    def encode(self, record: Message | Rejected | Missing | Estimate | PaneHeader) -> bytes:
        assert isinstance(record, PaneHeader)
        return encode_record(self._schema, counts_to_avro(record))

    def supersede_cells(self, pane: PaneHeader) -> None:
        """Do as ``supersede``: the cells of the pane before may be apart although those of this one are not."""
        self.supersede(pane, partial(_statistic_name, kind=self._kind))

    def process(self, pane: PaneHeader) -> None:
        self.write(_statistic_name(pane, self._kind), shared_folder(self._kind, pane), pane)


class _WriteStatisticFn(beam.DoFn):
    """Writes the statistics of panes, and keeps the cells apart if a pane has too few reports.

    One step writes both, so that the graph of a job is the same as before, and the job can be updated in place.
    """

    def __init__(self, out: str, private: str, *, newest_only: bool = False) -> None:
        self._counts = _WriteCellsFn(out, COUNTS, newest_only=newest_only)
        self._few = _WriteCellsFn(private, FEW, private=True, newest_only=newest_only)

    def start_bundle(self) -> None:
        self._counts.start_bundle()
        self._few.start_bundle()

    def process(self, statistic: Statistic) -> None:
        self._counts.supersede_cells(statistic)
        self._few.supersede_cells(statistic)
        if statistic.apart:
            self._few.process(statistic)
            self._counts.process(PaneHeader(**statistic.header()))
        else:
            self._counts.process(statistic)

    def finish_bundle(self) -> None:
        self._few.finish_bundle()
        self._counts.finish_bundle()
