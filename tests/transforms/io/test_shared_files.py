"""Panes share files once a bundle has many of them, so that nobody can have files at will."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests import build
from tests.build import HOUR, START
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.estimate import Estimate
from uldp.schemas.flags import Flag
from uldp.schemas.pane import Accounting, Pane, PaneKind, Superseded
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.results import filing
from uldp.transforms.io.results.panes import MAX_OWN_FILES
from uldp.transforms.io.results.write import write_estimates, write_statistics


def panes(windows: int, n: int, *, collection: str = "c", first: int = 0) -> list[Statistic]:
    return [
        build.pane([n, 0], start=START + hour * HOUR, key=(collection, 1), accounting=Accounting(n + 1, n, late=1))
        for hour in range(first, first + windows)
    ]


def estimates(supports: list[Statistic], *estimators: str) -> list[Estimate]:
    return [build.estimate(each, [1, 0], [0.1, 0.1], estimator=name) for each in supports for name in estimators]


def write(
    out: Path, counts: list[Statistic], estimated: list[Estimate], *, newest_only: bool = False
) -> dict[str, int]:
    """Write a bundle of each; returns the number of files by kind, and of those that are shared."""
    for fn, elements in (
        (write_statistics(str(out), str(out), newest_only=newest_only), counts),
        (write_estimates(str(out), newest_only=newest_only), estimated),
    ):
        fn.start_bundle()
        for element in elements:
            fn.process(element)
        fn.finish_bundle()
    return dict(Counter(kind_of_file(file.relative_to(out)) for file in sorted(out.glob("*/*/*/*"))))


def kind_of_file(path: Path) -> str:
    kind, collection, folder, _ = path.parts
    return f"{kind}/all" if collection == "all" else f"{kind}/shared" if folder == "shared" else kind


@pytest.mark.parametrize(
    ("windows", "n", "own", "shared"),
    [
        (1, 1, 1, 0),
        (MAX_OWN_FILES, 1, MAX_OWN_FILES, 0),
        (MAX_OWN_FILES + 1, 1, 0, 1),
        (1_000, 99, 0, 1),
        (200, 1_000_000, 0, 1),
        (1, 0, 0, 1),
        (200, 0, 0, 1),
    ],
)
def test_a_bundle_has_few_files(windows: int, n: int, own: int, shared: int, tmp_path: Path) -> None:
    counts = panes(windows, n)
    estimated = estimates(counts, "mle") if n else []
    expected = {"counts": own, "counts/shared": shared}
    if n:
        expected |= {"estimates": own, "estimates/shared": shared}
    assert write(tmp_path, counts, estimated) == {name: files for name, files in expected.items() if files}
    assert len(ResultsFolder(tmp_path).statistics()) == windows
    assert len(ResultsFolder(tmp_path).estimates()) == len(estimated)


def test_all_that_is_written_is_read(tmp_path: Path) -> None:
    counts = [*panes(150, 3), *panes(150, 5, collection="d"), *panes(5, 1_000, collection="e"), *panes(7, 0, first=200)]
    estimated = estimates(counts[:305], "mle", "em")
    files = write(tmp_path, counts, estimated)
    assert files == {
        "counts": 5,
        "counts/shared": 2,
        "estimates": 2 * 5,
        "estimates/shared": 4,
    }

    def key(pane: Statistic) -> tuple[object, ...]:
        return pane.key

    assert sorted(map(key, ResultsFolder(tmp_path).statistics())) == sorted(map(key, counts))
    read = sorted((each.key, each.estimator, each.n) for each in ResultsFolder(tmp_path).estimates())
    assert read == sorted((each.key, each.estimator, each.n) for each in estimated)


def test_a_bundle_that_is_tried_again_writes_the_same_files(tmp_path: Path) -> None:
    counts = panes(150, 3)
    once = write(tmp_path, counts, estimates(counts, "mle"))
    files = {path: path.read_bytes() for path in tmp_path.rglob("*.avro")}
    assert write(tmp_path, counts, estimates(counts, "mle")) == once
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.avro")} == files


def early(panes: list[Statistic], revision: int = 0) -> list[Statistic]:
    return [replace(each, pane=Pane(PaneKind.EARLY, revision)) for each in panes]


def of_each(collections: int, windows: int = 1, n: int = 200) -> list[Statistic]:
    return [pane for number in range(collections) for pane in panes(windows, n, collection=f"c-{number}")]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (of_each(MAX_OWN_FILES), {"counts": MAX_OWN_FILES, "estimates": 2 * MAX_OWN_FILES}),
        (of_each(MAX_OWN_FILES + 1), {"counts/all": 1, "estimates/all": 2}),
        (of_each(2, MAX_OWN_FILES), {"counts/all": 1, "estimates/all": 2}),
        (of_each(2, MAX_OWN_FILES + 1), {"counts/shared": 2, "estimates/shared": 4}),
        (early(of_each(1_000)), {"counts/all": 1, "estimates/all": 2}),
        (early(panes(150, 3)), {"counts/shared": 1, "estimates/shared": 2}),
        ([*early(of_each(20)), *of_each(20)], {"counts/all": 1, "estimates/all": 2}),
        (
            [*of_each(40), *panes(MAX_OWN_FILES + 1, 5)],
            {"counts/all": 1, "counts/shared": 1, "estimates/all": 2, "estimates/shared": 2},
        ),
    ],
)
def test_panes_of_several_collections_share_a_file(
    counts: list[Statistic], expected: dict[str, int], tmp_path: Path
) -> None:
    estimated = estimates(counts, "mle", "em")
    assert write(tmp_path, counts, estimated) == expected
    assert sorted(map(repr, ResultsFolder(tmp_path).statistics())) == sorted(map(repr, counts))
    assert sorted(map(repr, ResultsFolder(tmp_path).estimates())) == sorted(map(repr, estimated))
    files = {path: path.read_bytes() for path in tmp_path.rglob("*.avro")}
    assert write(tmp_path, counts[::-1], estimated[::-1]) == expected  # it is tried again, in another order
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.avro")} == files


def test_panes_that_count_no_report_share_the_file_of_the_others(tmp_path: Path) -> None:
    assert write(tmp_path, [*of_each(30, n=0), *of_each(20)], []) == {"counts/all": 1}
    assert len(ResultsFolder(tmp_path).panes()) == 50


def test_the_folder_of_several_collections_says_when_their_windows_are(tmp_path: Path) -> None:
    write(tmp_path, [*of_each(33), *panes(1, 9, first=3)], [])
    (folder,) = tmp_path.glob("counts/all/*")
    assert folder.name == "20260101T090000Z--20260101T130000Z"


def test_cells_of_few_reports_of_several_collections_are_for_the_owner(tmp_path: Path) -> None:
    few = [replace(each, flags=(Flag.FEW_REPORTS.value,)) for each in of_each(40, n=3)]
    assert write(tmp_path, few, []) == {"counts/all": 1, "few/all": 1}
    (path,) = tmp_path.glob("few/all/*/*.avro")
    assert [each.stat().st_mode & 0o077 for each in (path, *path.parents[:3])] == [0] * 4
    folder = ResultsFolder(tmp_path, private=tmp_path)
    assert sorted(map(repr, folder.statistics())) == sorted(map(repr, few))
    with pytest.raises(ResultsError, match="apart"):
        ResultsFolder(tmp_path).statistics()


def test_a_job_that_keeps_the_newest_panes_finds_their_files(tmp_path: Path) -> None:
    first = early(of_each(40))
    assert write(tmp_path, first, estimates(first, "mle"), newest_only=True) == {"counts": 40, "estimates": 40}
    before = Superseded(0, 200)
    for revision, newer in ((1, early(first, 1)), (1, first)):
        second = [
            replace(each, pane=Pane(each.pane.kind, revision), supersedes=before, accounting=Accounting(300, 300))
            for each in newer
        ]
        assert write(tmp_path, second, estimates(second, "mle"), newest_only=True) == {"counts": 40, "estimates": 40}
    assert {each.n for each in ResultsFolder(tmp_path).panes()} == {300}


def test_files_of_several_collections_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uldp.transforms.io.results.panes.MAX_RECORDS", 50)
    assert write(tmp_path, of_each(120), []) == {"counts": 20, "counts/all": 2}


def test_each_bundle_starts_anew(tmp_path: Path) -> None:
    for bundle in range(3):
        write(tmp_path, panes(MAX_OWN_FILES, 1, first=bundle * MAX_OWN_FILES), [])
    assert not [*tmp_path.glob("counts/*/shared")]


def test_shared_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filing, "MAX_RECORDS", 50)
    assert write(tmp_path, panes(MAX_OWN_FILES + 120, 1), [])["counts/shared"] == 4


def test_panes_that_wait_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Panes of a large domain do not wait in memory until the bundle has many."""
    for module in ("filing", "panes", "writers"):
        monkeypatch.setattr(f"uldp.transforms.io.results.{module}.MAX_BYTES", 1)
    assert write(tmp_path, panes(MAX_OWN_FILES + 3, 1), []) == {"counts": MAX_OWN_FILES, "counts/shared": 3}
