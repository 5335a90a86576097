"""What is damaged, missing or given up of the results of a job: uldp status names it, and then fails."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from uldp.pipelines.audit.reading import given_up_text
from uldp.pipelines.jobs.identity import JobIdentity, job_of
from uldp.pipelines.results.catalog import Catalog
from uldp.pipelines.results.files import Damaged, ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.panes import ESTIMATES, FEW_PANES, PANES, pane_paths
from uldp.pipelines.results.prune import lost_files
from uldp.pipelines.results.records import rejected_in
from uldp.pipelines.results.signed import Signed
from uldp.pipelines.results.text import number_of
from uldp.pipelines.status.uncounted import digests_of, late_in
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.io.folders import JOB, MERGED, MISSING
from uldp.transforms.io.local.journal import JOURNAL, begins_with, given_up_taken
from uldp.transforms.io.local.resume_point import RESUME, ResumePoint

#: Looks at a part of the results, whose private files are in the second folder.
_Look = Callable[[Path, Path, Damaged], None]


def faults_of(out: Path, private: Path) -> list[str]:
    """Return a line for each fault of a results directory, whose private files are below ``private``."""
    found: list[ValueError] = []
    for look in _LOOKS:
        try:
            look(out, private, found.append)
        except ValueError as error:
            found.append(error)
    return list(dict.fromkeys(map(str, found)))


def begun_job(out: Path) -> JobIdentity | None:
    """Return the job of results; None if none has begun; ResultsError if its identity cannot be read, or is lost."""
    job = job_of(out)
    if job is None and (out / JOURNAL).exists() and not (out / MERGED).exists():
        raise ResultsError(f"{plain(str(out / JOB))}: missing, as is {MERGED}, beside {JOURNAL}; restore it")
    return job


def _identity(out: Path, private: Path, damaged: Damaged) -> None:
    for folder in dict.fromkeys((out, private)):
        begun_job(folder)
        digests_of(folder, None)  # the key of senders is there whole, or not at all


def _resume_point(out: Path, private: Path, damaged: Damaged) -> None:
    point = ResumePoint.read(out / RESUME)
    if point is not None and not begins_with(out / JOURNAL, point.journal):
        damaged(ResultsError(f"{plain(str(out / JOURNAL))}: older than {RESUME}, or another one; restore it"))


def _panes(out: Path, private: Path, damaged: Damaged) -> None:
    folder = ResultsFolder(out, damaged, private)
    if Signed.read(out).panes or pane_paths(out, PANES, ESTIMATES):
        found = folder.published()
        _drained(folder.with_specs(found.headers))
        for kind in (PANES, ESTIMATES):
            _drained(found.catalog.panes(kind, found.catalog.entries(kind)))
    few = Catalog.read(private, (FEW_PANES,), damaged)
    _drained(few.panes(FEW_PANES, few.entries(FEW_PANES)))


def _reports(out: Path, private: Path, damaged: Damaged) -> None:
    for kind, read in (("late", late_in), ("rejected", rejected_in)):
        named: list[ResultsError] = []
        _drained(read(private / kind, named.append))
        for error in (*named, *lost_files(out, private / kind)):
            damaged(error)


def _lost(out: Path, private: Path, damaged: Damaged) -> None:
    folder = ResultsFolder(out, damaged, private)
    folder.left_out()
    given_up, lost = list(given_up_taken(out / JOURNAL)), sum(each.count for each in folder.missing())
    for each in given_up:
        damaged(ResultsError(f"{plain(str(out))}: {given_up_text(each, 'were')}"))
    if lost and not given_up:  # of a backfill, whose journal names what it has written alone, and of a topic
        damaged(ResultsError(f"{plain(str(out / MISSING))}: names {number_of(lost, 'message')} that the source lost"))


def _drained(records: Iterable[object]) -> None:
    deque(records, maxlen=0)


_LOOKS: Sequence[_Look] = (_identity, _resume_point, _panes, _reports, _lost)
