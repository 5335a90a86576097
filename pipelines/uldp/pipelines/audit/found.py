"""What the results of a job account for: its newest panes, its estimates, and its late and rejected reports."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from uldp.collector.reader import ReportReader
from uldp.pipelines.audit.recount import WindowKey
from uldp.pipelines.jobs.identity import JobIdentity, job_of
from uldp.pipelines.results.files import Damaged, ResultsError, finished
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest, newest_published
from uldp.pipelines.results.signed import Signed
from uldp.pipelines.results.specs import Specs, missing_spec
from uldp.schemas.flags import Flag, withheld
from uldp.schemas.pane import PaneHeader, PaneKind
from uldp.schemas.records import missing_messages
from uldp.schemas.rejected import count_reasons
from uldp.transforms.io.archive import held_twice
from uldp.transforms.io.folders import JOB
from uldp.transforms.io.message_files import StreamError, opened, packed_messages
from uldp.transforms.io.stored_files import left


@dataclass(frozen=True)
class Found:
    """The results of a job."""

    specs: Specs  # the specs beside them
    job: JobIdentity  # the identity of the job
    panes: dict[WindowKey, PaneHeader]  # the newest pane of each window
    #: The windows and estimators without an estimate of the newest pane that is not held back.
    lacking: list[tuple[WindowKey, str]]
    #: Those of them whose windows have other estimates, while no journal says which the spec named by then.
    unsure: list[tuple[WindowKey, str]]
    late: int  # number of late reports that are stored
    rejected: Counter[str]  # number of rejected reports that are stored, by reason
    missing: int  # number of messages that the job knows to be lost
    missing_sources: frozenset[str]  # the parts of the source that have lost them

    @classmethod
    def read(cls, out: Path, private: Path, signed: Signed, damaged: Damaged) -> "Found":
        """Read a job's results, whose journal knows estimators of earlier specs; ResultsError if they are none."""
        folder = ResultsFolder(out, damaged, private)
        specs = folder.specs
        fired = folder.panes()
        panes = {pane.key: pane for pane in newest(fired)}
        for collection, version in sorted({key[:2] for key in panes} - specs.keys()):
            raise missing_spec(f"{collection}-v{version}")
        published = {pane.key: pane for pane in newest_published(fired)}
        estimates = newest(folder.estimates())
        counted = {key: pane.accounting for key, pane in published.items()}
        there = {(each.key, each.estimator) for each in estimates if each.accounting == counted.get(each.key)}
        by, job, lost = signed.estimators(), job_of(out), list(folder.missing())
        if job is None:
            raise ResultsError(f"{out / JOB}: missing; restore it, for it says what job this was")
        wanted = ((pane, name) for pane in published.values() for name in _published(pane, specs, by.get(pane.key)))
        lacking = [(pane.key, name) for pane, name in wanted if (pane.key, name) not in there]
        # A stream may get another estimator while it runs.
        others = {key for key, _ in there} - by.keys() if job.command == "stream" else set()
        return cls(
            specs,
            job,
            panes,
            [each for each in lacking if each[0] not in others],
            [each for each in lacking if each[0] in others],
            sum(late_reports(private, specs, damaged)),
            count_reasons(folder.rejected()),
            missing_messages(lost),
            frozenset(record.source for record in lost),
        )

    @property
    def fired_until(self) -> float:
        """The end of the last window that has fired on time: all windows that end before have fired."""
        return max((pane.window_end for pane in self.panes.values() if not is_open(pane)), default=-math.inf)


def is_open(pane: PaneHeader | None) -> bool:
    """Return whether a window has not fired on time, given its newest pane."""
    return pane is None or pane.pane.kind is PaneKind.EARLY or Flag.INCOMPLETE in pane.flags


def _published(pane: PaneHeader, specs: Specs, signed: Mapping[str, int] | None) -> Iterable[str]:
    """Return the estimators of a pane; ``signed`` has the reports of estimates, None if no journal has the window."""
    spec = specs.get((pane.collection, pane.version))
    if spec is None or not pane.n or withheld(spec.limits, pane.flags):
        return ()
    if signed is None:
        return spec.estimators
    # If the newest pane has no estimate at all, nothing says by which estimators it should have been.
    return [name for name, existed in signed.items() if existed >= pane.accounting.existed] or spec.estimators


def late_reports(private: Path, specs: Specs, damaged: Damaged) -> Iterator[int]:
    """Yield the number of reports in each file of late reports that no earlier file holds."""
    decoder = ReportReader(specs.values(), judge_lateness=False, sender_key=bytes(32))
    paths = [str(path) for path in finished(private / "late")]
    held = held_twice(paths)
    for path in paths:
        try:
            with opened(path) as file:
                parts = left(packed_messages(file, path), held.get(path, ()))
                yield sum(decoder.decode(part).received for part in parts)
        except (StreamError, OSError) as error:
            damaged(ResultsError(str(error)))
