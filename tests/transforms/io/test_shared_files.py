"""Panes of few reports share files once a bundle has many of them, so that nobody can have files at will."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests import build
from tests.build import HOUR, START
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import Accounting, Pane, PaneKind
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


def write(out: Path, counts: list[Statistic], estimated: list[Estimate]) -> dict[str, int]:
    """Write a bundle of each; returns the number of files by kind, and of those that are shared."""
    for fn, elements in ((write_statistics(str(out), str(out)), counts), (write_estimates(str(out)), estimated)):
        fn.start_bundle()
        for element in elements:
            fn.process(element)
        fn.finish_bundle()
    return {
        f"{kind}{shared}": len(files)
        for kind in ("counts", "estimates")
        for shared in ("", "/shared")
        if (files := [file for file in out.glob(f"{kind}/*/*/*") if (file.parent.name == "shared") == bool(shared)])
    }


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


def test_early_panes_have_files_of_their_own(tmp_path: Path) -> None:
    """A job that is stopped writes them again, with a flag."""
    counts = [replace(each, pane=Pane(PaneKind.EARLY, 0)) for each in panes(150, 3)]
    assert write(tmp_path, counts, estimates(counts, "mle")) == {"counts": 150, "estimates": 150}


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
