"""What a local job has signed off in its journal: the segments that it has read, and the panes that it has written."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from uldp.pipelines.audit.recount import WindowKey
from uldp.pipelines.audit.source import StreamSource
from uldp.pipelines.results.files import ResultsError
from uldp.transforms.io.local.journal import (
    JOURNAL,
    FileWritten,
    JournalError,
    PaneWritten,
    SegmentRead,
    read_journal,
)


@dataclass
class Signed:
    """The last entry of each segment, window and file.

    Attributes:
        segments: By the name of the file.
        panes: The largest number of reports of a pane, by window.
        files: The files of late and rejected reports, with the time of their writing in seconds since 1970.
    """

    segments: dict[str, SegmentRead] = field(default_factory=dict)
    panes: dict[WindowKey, int] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, out: Path) -> "Signed":
        """Read the journal beside results; of a job that keeps none, nothing is signed.

        Raises:
            ResultsError: if it is damaged.
        """
        signed = cls()
        try:
            for entry in read_journal(out / JOURNAL):
                signed._add(entry)
        except JournalError as error:
            raise ResultsError(str(error)) from error
        return signed

    def _add(self, entry: SegmentRead | PaneWritten | FileWritten) -> None:
        if isinstance(entry, SegmentRead):
            self.segments[f"{entry.segment}.avro"] = entry
        elif isinstance(entry, FileWritten):
            self.files[entry.name] = entry.time
        elif not entry.estimator:
            key = entry.collection, entry.version, entry.window_start, entry.window_end
            self.panes[key] = max(self.panes.get(key, 0), entry.received)


@dataclass(frozen=True)
class Reading:
    """What a job has read of its stream, and what is there now.

    Attributes:
        unread: The segments that are there, and that the job has not read.
        waiting: Those of them behind all that it has read.
        gone: The segments that it has read, and that are not there.
        replaced: The segments that were others when it read them.
    """

    unread: frozenset[str]
    waiting: frozenset[str]
    gone: frozenset[str]
    replaced: frozenset[str]

    @classmethod
    def of(cls, signed: Signed, source: StreamSource) -> "Reading":
        """Compare the journal of a job with its stream."""
        there, last = set(source.names()), max(signed.segments)
        unread = there - signed.segments.keys()
        both = sorted(there & signed.segments.keys())
        return cls(
            frozenset(unread),
            frozenset(name for name in unread if name > last),
            frozenset(signed.segments.keys() - there),
            frozenset(_replaced(both, signed, source)),
        )


def _replaced(names: list[str], signed: Signed, source: StreamSource) -> Iterator[str]:
    for name in names:
        entry = signed.segments[name]
        try:
            if source.identify(name) != (entry.marker, entry.nbytes):
                yield name
        except (OSError, ValueError):
            pass  # it cannot be read, and who reads it says so
