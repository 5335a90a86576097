"""Exporting results at the command line: what is chosen, what is damaged, and what is said."""

import shutil
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.pipelines.command import SPEC, Run
from uldp.pipelines.cli import main


@pytest.fixture(scope="module")
def results(simulated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a backfill makes of the simulated stream."""
    out = tmp_path_factory.mktemp("backfilled") / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["uldp", "backfill", "--spec", SPEC, "--from", str(simulated), "--to", str(out)])
        main()
    return out


def starts(file: Path) -> list[str]:
    """The hours in which the windows of a file begin."""
    return sorted({f"{time:%H}" for time in pq.read_table(file)["window_start"].to_pylist()})


@pytest.mark.parametrize(
    ("options", "hours"),
    [
        ((), ["09", "10", "11"]),
        (("--last", "2"), ["10", "11"]),
        (("--since", "2026-01-05T10:30", "--last", "1", "--collection", "manhattan-checkins"), ["11"]),
        (("--since", "2026-01-05T12:00"), []),
    ],
)
def test_export_chooses_as_show_does(
    options: tuple[str, ...], hours: list[str], uldp: Run, results: Path, tmp_path: Path
) -> None:
    code, out, err = uldp("export", results, "--to", tmp_path / "f.parquet", *options)
    assert (code, err) == (0, "")
    assert starts(tmp_path / "f.parquet") == hours
    assert out.startswith(f"wrote {tmp_path / 'f.parquet'}: ")
    assert out.endswith(f" rows of {len(hours)} estimate{'' if len(hours) == 1 else 's'}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--collection", "manhattan"), "the results have no collection 'manhattan'; did you mean"),
        (("--estimator", "mlee"), "the results have no estimator 'mlee'; did you mean 'mle'?"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_file(
    arguments: tuple[str, ...], message: str, uldp: Run, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = uldp("export", results, "--to", "f.csv", *arguments)
    assert (code, out) == (1, "")
    assert err.startswith(f"error: {message}")
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_format_is_refused(uldp: Run, results: Path, tmp_path: Path) -> None:
    code, out, err = uldp("export", results, "--to", tmp_path / "f.xlsx")
    assert (code, out) == (1, "")
    assert "f.xlsx: the ending decides the format; choose one of .parquet, .arrow, .csv" in err
    assert list(tmp_path.iterdir()) == []


def test_a_spec_that_is_missing_is_named_once(uldp: Run, results: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    shutil.copytree(results, out)
    spec = out / "specs" / "manhattan-checkins-v1" / "spec.yaml"
    spec.write_text(spec.read_text().replace("epsilon: 6", "epsilon: 5"))
    code, said, err = uldp("export", out, "--to", tmp_path / "f.csv")
    assert (code, len(err.splitlines())) == (1, 1)
    assert "is not the spec of the job that made the estimates" in err
    assert said == f"wrote {tmp_path / 'f.csv'}: 0 rows of 3 estimates\n"
