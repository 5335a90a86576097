"""Results directories without a pane. A job that failed before its first pane leaves one, and another job may take it.

A job that left late or rejected reports without a pane may have read its source to the end, so its directory stays
its own. A backfill that fails removes all that it wrote; on a cluster, once the runner says that the job is over.
"""

import shutil
from pathlib import Path

from apache_beam.io.filesystems import FileSystems

from uldp.pipelines.jobs.identity import JobIdentity
from uldp.transforms.io.folders import COUNTS, FEW, IDS, JOB, LEFT_OUT, MISSING, is_remote
from uldp.transforms.io.listing import paths_below
from uldp.transforms.io.local.journal import JOURNAL
from uldp.transforms.io.remote import matching

#: The folders of panes, and the folders of records of single reports and of lost messages.
_PANES = (COUNTS, FEW, "estimates")
_RECORDS = ("late", "rejected", MISSING)
#: The names that a job writes at the top of a directory. The identity is last, so that what remains after a crash is
#: still known as a job's.
_WRITTEN = (*_PANES, *_RECORDS, IDS, "specs", "resume.json", JOURNAL, "sender.key", LEFT_OUT, JOB)
#: So many files tell whether a folder behind a URL holds a file that is complete: those that are not are a few.
_SOME = 1000


def has_panes(out: str) -> bool:
    """Return whether a directory, here or behind a URL, holds a pane."""
    return any(_has_file(out, kind) for kind in _PANES)


def has_results(out: str) -> bool:
    """Return whether a directory, here or behind a URL, holds a pane or a record of a report."""
    return any(_has_file(out, kind) for kind in (*_PANES, *_RECORDS))


def is_abandoned(out: Path, job: JobIdentity | None) -> bool:
    """Return whether a locked directory holds no result, and its job, if known, writes none that a lock hides."""
    return not (job is not None and job.apart) and not has_results(str(out))


def clear(out: str) -> None:
    """Remove all that a job has written to a directory, here or behind a URL, and no other file."""
    for name in _WRITTEN:
        if is_remote(out):
            found = matching(FileSystems.join(out, name)) + matching(FileSystems.join(out, name, "**"))
            if found:
                FileSystems.delete([file.path for file in found])
        elif (path := Path(out, name)).is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _has_file(out: str, kind: str) -> bool:
    if is_remote(out):
        return bool(matching(FileSystems.join(out, kind, "**"), most=_SOME))
    return any(not path.name.startswith(".") for path in paths_below(Path(out, kind), "**/*.avro"))
