"""The ids of reports alone decide how folders are joined, wherever the folders have them; equal tables elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations, permutations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build import HOUR, START, columns, spec
from uldp.collector.columns import MixedColumns
from uldp.pipelines.jobs.identity import JobIdentity
from uldp.pipelines.jobs.kept_specs import keep_specs
from uldp.pipelines.merge.merge import merge
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest, newest_published
from uldp.schemas.flags import Flag
from uldp.schemas.pane import Accounting, Pane, PaneKind
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.folders import JOB
from uldp.transforms.io.results.private import IdsFiling
from uldp.transforms.io.results.writers import FilesWriter, StatisticsWriter

#: Reports of one letter: with 40 values, no other reports have a table like that of so many.
BLOCK, VALUES = 100, 40
SPEC = spec(domain={"size": VALUES})


@dataclass(frozen=True)
class Window:
    """A window in a folder.

    Attributes:
        reports: A letter for each hundred reports.
        table: The number of the table; tables of one number and of as many reports are equal.
        kept: The letters of the reports of which the folder has the ids; all of them, unless given.
        accounting: What the folder says of the window; all reports were received and counted, unless given.
    """

    reports: str
    table: int = 0
    kept: str | None = None
    accounting: Accounting | None = None

    @property
    def has_ids(self) -> bool:
        return self.kept in (None, self.reports)


Folder = Sequence[Window]


def counted(reports: str, late: int = 0) -> Accounting:
    """The accounting of these reports, and of some that were too late."""
    n = len(reports) * BLOCK
    return Accounting(received=n + late, counted=n, late=late)


def save(out: Path, windows: Folder, spec: CollectionSpec = SPEC, job: JobIdentity | None = None) -> str:
    """Save windows that follow each other, as a job with ``--keep-ids`` does."""
    keep_specs(str(out), [spec])
    panes = StatisticsWriter(str(out), str(out))
    ids = FilesWriter(str(out), IdsFiling())
    for hour, window in enumerate(windows):
        start = START + hour * HOUR
        accounting = window.accounting or counted(window.reports)
        n = accounting.counted
        cells = np.bincount(np.random.default_rng((window.table, n)).integers(0, VALUES, n), minlength=VALUES)
        flags = (Flag.FEW_REPORTS.value,) if 0 < n < spec.limits.min_reports else ()
        bounds = start, start + HOUR, Pane(PaneKind.ON_TIME, 0)
        panes.add(Statistic("c", 1, spec.device_digest, *bounds, cells=cells, accounting=accounting, flags=flags))
        kept = window.reports if window.kept is None else window.kept
        numbers = [(hour + 1, ord(letter) * BLOCK + each) for letter in kept for each in range(BLOCK)]
        if numbers:
            ids.add(MixedColumns((columns(numbers, start),)))
    panes.finish()
    ids.finish()
    if job is not None:
        (out / JOB).write_bytes(job.encode())
    return str(out)


def merged(*folders: Folder) -> list[Statistic] | str:
    """The newest pane of each window of a merge, or why there is none."""
    with TemporaryDirectory() as root:
        places = [save(Path(root, str(number)), folder) for number, folder in enumerate(folders)]
        try:
            merge(places, f"{root}/merged")
        except ResultsError as error:
            assert not Path(root, "merged").exists()
            return str(error)
        panes = newest(ResultsFolder(Path(root, "merged"), private=Path(root, "merged")).statistics())
        assert all(isinstance(pane, Statistic) for pane in panes)
        return panes


def numbers(outcome: list[Statistic] | str) -> list[int] | None:
    """The number of counted reports of each window; None of a merge that is refused."""
    return None if isinstance(outcome, str) else [pane.n for pane in outcome]


def exact(*sets: str) -> int | None:
    """The number of all reports, if some of the sets have each of them once; else None."""
    together = set(chain(*sets))
    some = chain.from_iterable(combinations(sets, size) for size in range(len(sets) + 1))
    found = any(sum(map(len, each)) == len(together) and set(chain(*each)) == together for each in some)
    return len(together) * BLOCK if found else None


LETTERS = "abcd"
SETS = st.sets(st.sampled_from(LETTERS)).map(lambda letters: "".join(sorted(letters)))


@settings(max_examples=25)
@given(st.lists(st.tuples(SETS, st.integers(0, 1)), min_size=2, max_size=3))
def test_with_ids_the_outcome_depends_on_ids_alone(folders: list[tuple[str, int]]) -> None:
    """Neither tables nor the order of folders decide; and what is refused cannot be proved."""
    n = exact(*(reports for reports, _ in folders))
    for order in permutations(folders):
        assert numbers(merged(*([Window(*of)] for of in order))) == (None if n is None else [n])


WINDOWS = st.lists(st.tuples(SETS, SETS, st.sampled_from(["all", "none", "some"])), min_size=1, max_size=3)


@settings(max_examples=60)
@given(WINDOWS, st.booleans())
def test_equal_tables_speak_only_where_no_ids_contradict_them(
    windows: list[tuple[str, str, str]], lose_first: bool
) -> None:
    """The second folder has lost ids: all of a window, as ``uldp prune`` removes them, or some, as damage does."""
    one = [Window(first) for first, _, _ in windows]
    other = [Window(second, kept={"none": "", "some": second[1:]}.get(lost)) for _, second, lost in windows]
    outcome = numbers(merged(*((other, one) if lose_first else (one, other))))
    speaking = [a.has_ids and b.has_ids for a, b in zip(one, other, strict=True)]
    damaged = any(not b.has_ids and b.kept for b in other)
    equal = all(len(first) == len(second) for first, second, _ in windows)
    contradicted = any(
        ids and len(first) == len(second) and first != second
        for ids, (first, second, _) in zip(speaking, windows, strict=True)
    )
    if damaged or (not all(speaking) and (not equal or contradicted)):
        assert outcome is None
        return
    wanted = [
        exact(first, second) if ids else len(first) * BLOCK
        for ids, (first, second, _) in zip(speaking, windows, strict=True)
    ]
    assert outcome == (None if None in wanted else wanted)


def test_ids_that_are_partly_there_are_named_and_prove_nothing() -> None:
    one, other = [Window("ab")], [Window("ab", kept="a")]
    for pair in ((one, other), (other, one)):
        text = merged(*pair)
        assert isinstance(text, str)
        assert "keeps 100 ids of its 200 reports, so nothing shows that they have no report in common" in text


def test_a_copy_without_ids_has_those_of_the_folder_that_it_is_equal_to() -> None:
    one, copy, other = [Window("ab")], [Window("ab", kept="")], [Window("cd", 1)]
    for order in permutations((one, copy, other)):
        assert numbers(merged(*order)) == [400]
    replayed = [Window("cd")]  # equal tables are no proof, as these show
    for order in permutations((one, copy, replayed)):
        assert numbers(merged(*order)) is None


def _job(command: str, source: str) -> JobIdentity:
    return JobIdentity.of("backfill" if command == "backfill" else "stream", source, "x", [SPEC])


@pytest.mark.parametrize("copied", [False, True], ids=["", "beside a copy of the stream"])
def test_late_reports_are_received_once_in_any_order_of_the_folders(tmp_path: Path, copied: bool) -> None:
    live = [Window("ab", accounting=counted("ab", late=100))]
    places = [save(tmp_path / "live", live, job=_job("stream", "s"))]
    places.append(save(tmp_path / "of late", [Window("c")], job=_job("backfill", str(tmp_path / "live" / "late"))))
    if copied:
        places.append(save(tmp_path / "copy", live, job=_job("stream", "s")))
    for number, order in enumerate(permutations(places)):
        merge(order, str(tmp_path / f"merged{number}"))
        (pane,) = newest(ResultsFolder(tmp_path / f"merged{number}").panes())
        assert pane.accounting == counted("abc")


def test_few_reports_show_in_no_difference_of_a_sum_and_all_that_was_published(tmp_path: Path) -> None:
    few = spec(domain={"size": VALUES}, limits={"min_reports": 150})
    sets = ["ab", "cd", "e"]
    places = [save(tmp_path / reports, [Window(reports)], few) for reports in sets]
    for number, order in enumerate(permutations(places)):
        out = tmp_path / f"merged{number}"
        merge(order, str(out))
        panes = list(ResultsFolder(out, private=out).panes())
        assert [(pane.n, Flag.FEW_MORE in pane.flags) for pane in newest(panes)] == [(500, True)]
        assert [pane.n for pane in newest_published(panes)] == [400]
        assert [each.n for each in newest(ResultsFolder(out).estimates())] == [400]
