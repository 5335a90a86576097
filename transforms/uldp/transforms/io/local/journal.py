"""The journal of a local job: what it has read of its stream, and what it has written, in a file beside its results.

    ["segment", "000000000003", "<sync marker>", bytes, messages]
    ["given_up", first, last, messages, bound]
    ["pane", collection, version, window start, window end, estimator, existed, revision, apart, missing]
    ["file", "rejected/<name>.avro", time, digest]
    ["open", collection, version, window start, window end, existed]

A line each, in the order in which they happened. A job that is started again reads some segments again, and then says
so again. The job only appends. A line that a power cut has torn has no end, and the next run removes it.

The resume point holds the size of the journal and its digest, so that a journal that is older than the point, or was
changed, is noticed. All that the journal says up to there is on the disk.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, TypeAdapter

from uldp.schemas.errors import DataError
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.mistakes import plain
from uldp.schemas.specs.strict import Strict
from uldp.transforms.per_process import Itself

#: The file of the journal of a job, beside its results.
JOURNAL = "journal.jsonl"
#: A line is shorter: the longest name of a collection has some hundred characters.
_LONGEST_LINE = 4096


class SegmentRead(NamedTuple):
    """A segment that was read to its end."""

    segment: str  # its name, without an ending
    marker: str  # its sync marker, in hexadecimal digits: random bytes that its writer drew
    nbytes: int  # the size of the file
    messages: int  # the number of its messages


class GivenUpTaken(NamedTuple):
    """Segments that were given up, and that the job took as such: it has accounted their messages as missing."""

    first: int  # the number of the first segment
    last: int  # the number of the last one
    messages: int  # the number of their messages, without those before its resume point
    #: Empty if that number is exact. At least so many, if the stream does not know it. At most so many are missing, if
    #: the job had read some of the segments before: windows that could not change have their reports.
    bound: Literal["", "at least", "at most"]


class Extent(NamedTuple):
    """What a pane accounts for. Of two panes of a window, the greater one replaces the other."""

    existed: int  # the number of reports, received or missing
    received: int  # the number of reports that were received

    @classmethod
    def of(cls, accounting: Accounting) -> Self:
        """Return that of a pane with this accounting."""
        return cls(accounting.existed, accounting.received)


class PaneWritten(NamedTuple):
    """A pane that was written: its statistic, or one of its estimates."""

    collection: str  # the name of the collection
    version: int
    window_start: int  # in milliseconds
    window_end: int  # in milliseconds
    estimator: str  # the estimator of an estimate; empty for the statistic
    existed: int  # the number of reports that the pane accounts for, received or missing
    revision: int  # the number of the pane
    apart: bool  # whether the cells of the statistic are apart, because of too few reports
    missing: int = 0  # the number of these that are missing

    @property
    def extent(self) -> "Extent":
        """What the pane accounts for."""
        return Extent(self.existed, self.existed - self.missing)


class FileWritten(NamedTuple):
    """A file of late or rejected reports that was written."""

    name: str  # its path, below the folder of private results
    time: int  # when, in seconds since 1970, rounded up
    digest: str  # the first 16 hexadecimal digits of a digest of its content


class LeftOpen(NamedTuple):
    """A window that had not fired on time when its job ended; a pane that is written later says more of it."""

    collection: str  # the name of the collection
    version: int
    window_start: int  # in milliseconds
    window_end: int  # in milliseconds
    existed: int  # the number of reports that its newest pane accounted for


Entry = SegmentRead | GivenUpTaken | PaneWritten | FileWritten | LeftOpen

_NAMES = {SegmentRead: "segment", GivenUpTaken: "given_up", PaneWritten: "pane", FileWritten: "file", LeftOpen: "open"}
_KINDS: dict[str, TypeAdapter[Any]] = {name: TypeAdapter(kind) for kind, name in _NAMES.items()}
_SEGMENT, _GIVEN_UP = b'["segment"', b'["given_up"'
_ENCODER = json.JSONEncoder(separators=(",", ":"))  # json.dumps would make one for each line


class JournalEnd(Strict):
    """How far a journal went at some time."""

    size: Annotated[int, Field(ge=0)]  # in bytes
    digest: str  # of these bytes


def encode_entry(entry: Entry) -> bytes:
    """Return an entry as a line."""
    return _ENCODER.encode([_NAMES[type(entry)], *entry]).encode() + b"\n"


def decode_entry(line: bytes) -> Entry:
    """Read a line that ``encode_entry`` returned; ValueError if it is something else."""
    kind, *values = json.loads(line)
    entry: Entry = _KINDS[kind].validate_python(tuple(values), strict=True)
    return entry


def read_journal(
    path: Path, end: int | None = None, wanted: Callable[[bytes], bool] = lambda line: True
) -> Iterator[Entry]:
    """Read whole lines of a journal, in ``end`` bytes, that are ``wanted``; DataError if one is damaged.

    To decode a line takes much longer than to read it.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    size = 0
    with file:
        for number, line in enumerate(iter(partial(file.readline, _LONGEST_LINE), b""), 1):
            size += len(line)
            torn = not line.endswith(b"\n")
            if (end is not None and size > end) or (torn and len(line) < _LONGEST_LINE):
                return
            if not torn and not wanted(line):
                continue
            try:
                yield decode_entry(line)
            except (ValueError, TypeError, LookupError, RecursionError):
                raise DataError(
                    f"{plain(str(path))}: line {number} is none of a journal; restore the whole results from a backup,"
                    " or choose another --to"
                ) from None


class Journal(Itself):
    """The journal of a job that runs, which holds entries until ``commit``; ``anew`` removes what an earlier run wrote.

    A context manager: the file is open from ``__enter__`` to ``__exit__``.
    """

    def __init__(self, path: Path, *, anew: bool = False) -> None:
        self.path, self.anew = path, anew
        self._digest, self._size = hashlib.sha256(), 0
        self._held: list[bytes] = []

    def __enter__(self) -> Self:
        """Open the file behind its last whole line."""
        self._file = self.path.open("a+b")
        if self.anew:
            self._file.truncate(0)
        self._file.seek(0)
        for line in iter(self._file.readline, b""):
            if line.endswith(b"\n"):
                self._digest.update(line)
                self._size += len(line)
        self._file.truncate(self._size)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, entry: Entry) -> None:
        """Hold an entry."""
        self.hold(encode_entry(entry))

    def hold(self, lines: bytes) -> None:
        """Hold entries as lines."""
        self._held.append(lines)

    def commit(self) -> JournalEnd:
        """Append what was added, so that the disk has it, and return how far the journal goes."""
        if self._held:
            lines, self._held = b"".join(self._held), []
            self._file.write(lines)
            self._file.flush()
            os.fsync(self._file.fileno())
            self._digest.update(lines)
            self._size += len(lines)
        return JournalEnd(size=self._size, digest=self._digest.hexdigest())


def begins_with(path: Path, end: JournalEnd) -> bool:
    """Return whether a journal went so far at some time, and has only grown since."""
    digest, size = hashlib.sha256(), 0
    with suppress(FileNotFoundError), path.open("rb") as file:
        for part in _parts(file, end.size):
            digest.update(part)
            size += len(part)
    return (size, digest.hexdigest()) == (end.size, end.digest)


def segments_read(path: Path, first: str) -> dict[str, SegmentRead]:
    """Return the segments that a journal says are read, by name, from one on; DataError if a line is damaged."""
    since = _SEGMENT + b',"' + first.removesuffix(".avro").encode()  # all names have as many digits
    entries = read_journal(path, wanted=lambda line: line.startswith(_SEGMENT) and line >= since)
    return {entry.segment: entry for entry in entries if isinstance(entry, SegmentRead)}


def given_up_taken(path: Path) -> list[GivenUpTaken]:
    """Return the segments that a journal says were taken as given up, in order; DataError if a line is damaged."""
    entries = read_journal(path, wanted=lambda line: line.startswith(_GIVEN_UP))
    return sorted({entry.first: entry for entry in entries if isinstance(entry, GivenUpTaken)}.values())


def results_written(path: Path, end: int | None = None) -> Iterator[PaneWritten | FileWritten]:
    """Read the panes and files that a journal says are written, as ``read_journal`` does, with its errors."""
    for entry in read_journal(path, end, lambda line: not line.startswith((_SEGMENT, _GIVEN_UP))):
        if isinstance(entry, PaneWritten | FileWritten):
            yield entry


def append_entries(path: Path, entries: Iterable[Entry]) -> None:
    """Append entries to the journal of a job that has ended; the disk has them then."""
    with path.open("ab") as file:
        file.writelines(map(encode_entry, entries))
        file.flush()
        os.fsync(file.fileno())


def _parts(file: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield so many bytes of a file, in parts of bounded size."""
    while size > 0 and (part := file.read(min(size, 1 << 20))):
        yield part
        size -= len(part)
