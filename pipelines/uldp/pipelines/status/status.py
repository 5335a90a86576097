"""The state of a results directory and of the job that writes it, as text and as JSON."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uldp.pipelines.live.figures import CollectionFigures, Figures
from uldp.pipelines.live.position import Position, now_ms
from uldp.pipelines.live.served import Served, is_running
from uldp.pipelines.results.files import ResultsError, check_directory
from uldp.pipelines.results.text import accounting_text, number_of
from uldp.pipelines.status.faults import begun_job, faults_of
from uldp.schemas.errors import DataError
from uldp.schemas.pane import Accounting
from uldp.schemas.records import iso
from uldp.schemas.specs.collection import CollectionKey
from uldp.transforms.io.folders import COUNTS, FEW, IDS, JOB, MISSING
from uldp.transforms.io.listing import files_below
from uldp.transforms.io.local.journal import JOURNAL
from uldp.transforms.io.local.resume_point import RESUME, ResumePoint

#: The folders of results whose size is said.
FOLDERS = ("estimates", COUNTS, FEW, "rejected", "late", IDS, MISSING)


@dataclass(frozen=True)
class Disk:
    """What a folder takes."""

    nbytes: int  # the sizes of its files
    oldest: float | None  # when the oldest of them was written, in seconds since 1970; None without a file


@dataclass(frozen=True)
class Status:
    """The state of a results directory; times are in milliseconds since 1970."""

    at: int  # when this was so
    job: str | None  # the command and the source of the job; None if no job has begun, or if nobody can tell which
    unknown: bool  # whether nobody can tell which, because the file that identifies the job is damaged
    signed: bool | None  # whether a backfill has signed its results, as it does when it ends; None of another job
    running: bool  # whether a job of this machine writes to the directory
    position: Position | None  # the last position that a job of a local stream has written; None if it has ended
    resumes: int | None  # the watermark from which such a job goes on; None if there is none
    figures: Figures  # where the reports went
    disk: Mapping[str, Disk]  # what each folder takes that there is
    free: int  # the bytes that are free beside the results
    faults: Sequence[str]  # a line for whatever is damaged, missing or given up

    @classmethod
    def of(cls, out: Path, private: Path | None = None) -> "Status":
        """Look at results, whose private files may be elsewhere; ResultsError if one of both is no directory."""
        for folder in (out, private or out):
            check_directory(folder)
        job, unknown = None, False
        try:
            job = begun_job(out)
        except ResultsError:  # it is among the faults
            unknown = True
        return cls(
            at=now_ms(),
            job=None if job is None else str(job),
            unknown=unknown,
            signed=(out / JOURNAL).exists() if job is not None and job.command == "backfill" else None,
            running=is_running(out),
            position=Position.read(out),
            resumes=_watermark(out),
            figures=Served.of(out.name, out, private).figures.now(),
            disk=dict(_disk((out, private) if private is not None else (out,))),
            free=shutil.disk_usage(out).free,
            faults=faults_of(out, private or out),
        )

    def lines(self) -> Iterator[str]:
        """Yield it as text."""
        job = f"unknown, for {JOB} is damaged or missing" if self.unknown else self.job or "none has begun"
        yield f"job: {job}; {'running' if self.running else 'not running'}"
        if self.signed is False and not self.running:
            yield "  it has not signed its results: it has not ended, or an earlier version of uldp has written them"
        yield from (f"  {line}" for line in self._position_lines())
        for (collection, version), figures in sorted(self.figures.collections.items()):
            windows = number_of(figures.windows, "window")
            yield f"{collection} v{version}: {windows}, {accounting_text(figures.accounting)}"
            yield from (f"  {line}" for line in self._collection_lines(figures))
        yield f"in all: {accounting_text(self.figures.accounting)}"
        if self.figures.rejected:
            reasons = sorted(self.figures.rejected.items(), key=lambda each: (-each[1], each[0]))
            yield "rejected: " + ", ".join(f"{reports:,} {reason}" for reason, reports in reasons)
        if self.figures.missing:
            yield f"missing: {number_of(self.figures.missing, 'message')}, which the source lost"
        yield f"disk: {', '.join(self._disk_texts()) or 'nothing'}; {_size(self.free)} free"

    def _position_lines(self) -> Iterator[str]:
        position = self.position
        if position is not None:
            read = f"{number_of(position.messages, 'message')} of {number_of(position.segments, 'segment')} read"
            when = f"since {iso(position.begun)} by process {position.process}"
            yield f"{read} {when}, {number_of(position.ahead, 'segment')} to go"
            if position.watermark is None:
                yield "no watermark yet"
            else:
                lag = position.lag(self.at)
                yield f"watermark {iso(position.watermark)}" + (
                    "" if lag is None else f", {_age(lag)} behind the clock"
                )
            if position.spec_refused:
                yield f"{number_of(position.spec_refused, 'file')} of specs refused; the job's log says why"
            if not self.running:
                yield f"it was killed after {iso(position.at)}; start it again, and it goes on"
        elif self.resumes is not None:
            yield f"it goes on at the watermark {iso(self.resumes)} when it is started again"

    def _collection_lines(self, figures: CollectionFigures) -> Iterator[str]:
        last = figures.last
        yield f"last window until {iso(last.window_end)} ({last.pane.kind.replace('_', ' ')}): n {last.n:,}"
        yield f"last pane written {_age(self.at - int(figures.written * 1000))} ago"
        if figures.rejected_share or figures.missing_share:
            missing = f", at most {figures.missing_share:.2%} missing" if figures.missing_share else ""
            yield f"of this window, {figures.rejected_share:.2%} rejected{missing}"
        if figures.flagged:
            flags = ", ".join(f"{windows:,} {flag}" for flag, windows in sorted(figures.flagged.items()))
            yield f"flagged: {flags}"

    def _disk_texts(self) -> Iterator[str]:
        for name, disk in self.disk.items():
            old = disk.oldest is not None and name in (FEW, "rejected", "late", IDS)
            age = f" (the oldest {_age(self.at - int((disk.oldest or 0) * 1000))})" if old else ""
            yield f"{name} {_size(disk.nbytes)}{age}"

    def to_json(self) -> dict[str, Any]:
        """Return it as an object of JSON."""
        position = self.position
        return {
            "at": iso(self.at),
            "job": self.job,
            "signed": self.signed,
            "running": self.running,
            "watermark": None if position is None or position.watermark is None else iso(position.watermark),
            "lag_seconds": None if position is None or (lag := position.lag(self.at)) is None else lag / 1000,
            "segments_ahead": None if position is None else position.ahead,
            "spec_refused": None if position is None else position.spec_refused,
            "messages_read": None if position is None else position.messages,
            "resumes_at": None if self.resumes is None else iso(self.resumes),
            "collections": [_collection_json(*each) for each in sorted(self.figures.collections.items())],
            **_accounting(self.figures.accounting, self.figures.missing),
            "rejected_by_reason": dict(sorted(self.figures.rejected.items())),
            "damaged": self.figures.damaged,
            "disk": {
                name: {"bytes": disk.nbytes, "oldest": None if disk.oldest is None else iso(int(disk.oldest) * 1000)}
                for name, disk in self.disk.items()
            },
            "free_bytes": self.free,
            "faults": list(self.faults),
        }


def _collection_json(key: CollectionKey, figures: CollectionFigures) -> dict[str, Any]:
    last = figures.last
    return {
        "collection": key[0],
        "version": key[1],
        "windows": figures.windows,
        "panes": figures.panes,
        "last_window_end": iso(last.window_end),
        "last_window_n": last.n,
        "last_pane": iso(int(figures.written) * 1000),
        "rejected_share": figures.rejected_share,
        "missing_share": figures.missing_share,
        "flags": dict(sorted(figures.flagged.items())),
        **_accounting(figures.accounting, None),
    }


def _accounting(accounting: Accounting, missing: int | None) -> dict[str, int]:
    numbers = accounting.to_avro()
    del numbers["missing"]  # it may not be added up over windows
    return numbers if missing is None else numbers | {"missing": missing}


def _watermark(out: Path) -> int | None:
    with suppress(DataError):
        point = ResumePoint.read(out / RESUME)
        return None if point is None else point.watermark
    return None


def _disk(roots: Sequence[Path]) -> Iterator[tuple[str, Disk]]:
    for name in FOLDERS:
        files = [status for root in roots for _, status in files_below(root / name)]
        if files:
            yield name, Disk(sum(each.st_size for each in files), min(each.st_mtime for each in files))


def _size(nbytes: int) -> str:
    size, units = float(nbytes), ["B", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:.0f} {units[0]}" if units[0] == "B" else f"{size:.1f} {units[0]}"


def _age(milliseconds: int) -> str:
    seconds = max(milliseconds, 0) // 1000
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
