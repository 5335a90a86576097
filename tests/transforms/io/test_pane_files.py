"""The panes of a bundle share a file, so that nobody can have files at will."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR, START
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.estimate import Estimate
from uldp.schemas.flags import Flag
from uldp.schemas.pane import Accounting, Pane, PaneKind, Superseded
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.results.names import PaneFileName
from uldp.transforms.io.results.write import write_estimates, write_statistics


@given(
    st.none() | st.tuples(st.from_regex(r"[a-z0-9-]{1,64}", fullmatch=True), st.integers(1, 2**31 - 1)),
    st.integers(0, 253_370_764_800_000 - 1),
    st.integers(1, 10**9),
    st.from_regex(r"[0-9]{6}|[0-9a-f]{32}", fullmatch=True),
    st.none() | st.sampled_from(["mle", "norm-sub"]),
)
def test_the_name_of_a_file_says_what_it_has(
    of: tuple[str, int] | None, start: int, length: int, number: str, estimator: str | None
) -> None:
    name = PaneFileName(of, start, start + length, number, estimator)
    assert PaneFileName.read(str(name)) == name


@pytest.mark.parametrize(
    "name",
    [
        "000000.avro",
        "c-v1.20261301T000000Z--20260101T010000Z.000000.avro",
        "C-v1.20260101T000000Z--20260101T010000Z.000000.avro",
        "c.20260101T000000Z--20260101T010000Z.000000.avro",
        "c-v1.20260101T000000Z--20260101T010000Z.avro",
        ".c-v1.20260101T000000Z--20260101T010000Z.000000.avro",
        "all.20260101T000000Z--20260101T010000Z.000000.mle.avro.tmp",
    ],
)
def test_another_name_says_nothing(name: str) -> None:
    assert PaneFileName.read(name) is None


def panes(windows: int, n: int, *, collection: str = "c", first: int = 0) -> list[Statistic]:
    return [
        build.pane([n, 0], start=START + hour * HOUR, key=(collection, 1), accounting=Accounting(n + 1, n, late=1))
        for hour in range(first, first + windows)
    ]


def of_each(collections: int, windows: int = 1, n: int = 200) -> list[Statistic]:
    return [pane for number in range(collections) for pane in panes(windows, n, collection=f"c-{number}")]


def early(panes: list[Statistic], revision: int = 0) -> list[Statistic]:
    return [replace(each, pane=Pane(PaneKind.EARLY, revision)) for each in panes]


def estimates(supports: list[Statistic], *estimators: str) -> list[Estimate]:
    return [build.estimate(each, [1, 0], [0.1, 0.1], estimator=name) for each in supports for name in estimators]


def write(
    out: Path, counts: list[Statistic], estimated: list[Estimate], *, newest_only: bool = False
) -> dict[str, int]:
    """Write a bundle of each; returns the number of files by kind and scope."""
    for fn, elements in (
        (write_statistics(str(out), str(out), newest_only=newest_only), counts),
        (write_estimates(str(out), newest_only=newest_only), estimated),
    ):
        fn.start_bundle()
        for element in elements:
            fn.process(element)
        fn.finish_bundle()
    return dict(Counter(f"{file.parent.name} {file.name.split('.')[0]}" for file in out.glob("*/*.avro")))


@pytest.mark.parametrize(
    ("counts", "scope"),
    [
        (panes(1, 1), "c-v1"),
        (panes(1_000, 99), "c-v1"),
        (panes(200, 0), "c-v1"),
        (early(panes(150, 3)), "c-v1"),
        (of_each(2), "all"),
        (early(of_each(1_000)), "all"),
        ([*of_each(30, n=0), *early(of_each(20)), *panes(9, 5)], "all"),
    ],
)
def test_a_bundle_has_a_file_of_each_kind(counts: list[Statistic], scope: str, tmp_path: Path) -> None:
    estimated = estimates([each for each in counts if each.n], "mle", "em")
    expected = {f"counts {scope}": 1} | ({f"estimates {scope}": 2} if estimated else {})
    assert write(tmp_path, counts, estimated) == expected
    assert sorted(map(repr, ResultsFolder(tmp_path).statistics())) == sorted(map(repr, counts))
    read = sorted((each.key, each.estimator, each.n) for each in ResultsFolder(tmp_path).estimates())
    assert read == sorted((each.key, each.estimator, each.n) for each in estimated)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*.avro")}
    assert write(tmp_path, counts[::-1], estimated[::-1]) == expected  # it is tried again, in another order
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.avro")} == files


def test_cells_of_few_reports_of_several_collections_are_for_the_owner(tmp_path: Path) -> None:
    few = [replace(each, flags=(Flag.FEW_REPORTS.value,)) for each in of_each(40, n=3)]
    assert write(tmp_path, few, []) == {"counts all": 1, "few all": 1}
    (path,) = tmp_path.glob("few/*.avro")
    assert [each.stat().st_mode & 0o077 for each in (path, path.parent)] == [0] * 2
    folder = ResultsFolder(tmp_path, private=tmp_path)
    assert sorted(map(repr, folder.statistics())) == sorted(map(repr, few))
    with pytest.raises(ResultsError, match="apart"):
        ResultsFolder(tmp_path).statistics()


def test_a_job_that_keeps_the_newest_panes_finds_their_files(tmp_path: Path) -> None:
    first = early(of_each(20))
    assert sum(write(tmp_path, first, estimates(first, "mle"), newest_only=True).values()) == 40
    before = Superseded(0, 200)
    for newer in (early(first, 1), first):
        second = [
            replace(each, pane=Pane(each.pane.kind, 1), supersedes=before, accounting=Accounting(300, 300))
            for each in newer
        ]
        assert sum(write(tmp_path, second, estimates(second, "mle"), newest_only=True).values()) == 40
    assert {each.n for each in ResultsFolder(tmp_path).panes()} == {300}


def test_cells_that_are_apart_go_with_their_pane_and_a_newer_pane_of_an_earlier_run_stays(tmp_path: Path) -> None:
    """A run that is started again counts its revisions from 0, and its first panes have received fewer reports."""
    few = replace(early(panes(1, 3))[0], flags=(Flag.FEW_REPORTS.value,))
    assert write(tmp_path, [few], [], newest_only=True) == {"counts c-v1": 1, "few c-v1": 1}
    grown = replace(panes(1, 8)[0], pane=Pane(PaneKind.ON_TIME, 5), supersedes=Superseded(0, 3))
    assert write(tmp_path, [grown], [], newest_only=True) == {"counts c-v1": 1}
    write(tmp_path, early(panes(1, 5), 1), [], newest_only=True)
    assert [(pane.pane.revision, pane.n) for pane in newest(ResultsFolder(tmp_path).panes())] == [(5, 8)]


@pytest.mark.parametrize(("module", "limit"), [("filing.MAX_RECORDS", 50), ("filing.MAX_BYTES", 9_000)])
def test_panes_that_wait_are_bounded(module: str, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"uldp.transforms.io.results.{module}", limit)
    assert write(tmp_path, of_each(120), [])["counts all"] > 1
    assert len(ResultsFolder(tmp_path).panes()) == 120
