"""Which windows ``uldp show`` and ``uldp export`` choose, and what they say of names and specs that are not there."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.pipelines.command import Run


@pytest.mark.parametrize(
    ("options", "hours"),
    [
        ("", ["09", "10", "11"]),
        ("--last 2", ["10", "11"]),
        ("--since 2026-01-05T10:30 --last 1 --collection manhattan-checkins", ["11"]),
        ("--since 2026-01-05T12:00", []),
    ],
)
def test_show_and_export_choose_alike(
    options: str, hours: list[str], uldp: Run, backfilled: Path, tmp_path: Path
) -> None:
    code, out, err = uldp("show", backfilled, "--json", *options.split())
    shown = [json.loads(line)["window_start"] for line in out.splitlines()]
    assert (code, shown) == (0, [f"2026-01-05T{hour}:00:00Z" for hour in hours])
    assert err == ("" if hours else f"{backfilled}: no window of these has fired\n")
    file = tmp_path / "f.parquet"
    code, out, err = uldp("export", backfilled, "--to", file, *options.split())
    assert (code, err) == (0, "")
    rows = pq.read_table(file)["window_start"].to_pylist()
    assert sorted({f"{start:%H}" for start in rows}) == hours
    assert out == f"wrote {file}: {len(rows):,} rows of {len(hours)} estimate{'' if len(hours) == 1 else 's'}\n"


@pytest.mark.parametrize("command", [("show",), ("export", "--to", "f.csv")], ids=" ".join)
@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--collection=manhattan", "collection 'manhattan'; did you mean 'manhattan-checkins'?"),
        ("--estimator=mlee", "estimator 'mlee'; did you mean 'mle'? choose one of: mle"),
    ],
)
def test_a_name_that_is_not_there_is_one_line_and_leaves_no_file(
    command: tuple[str, ...],
    option: str,
    message: str,
    uldp: Run,
    backfilled: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = uldp(*command, backfilled, option)
    assert (code, out) == (1, "")
    assert err.startswith(f"error: the results have no {message}")
    assert list(tmp_path.iterdir()) == []


def test_a_spec_that_is_missing_is_named_once(uldp: Run, backfilled: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    shutil.copytree(backfilled, out)
    spec = out / "specs" / "manhattan-checkins-v1" / "spec.yaml"
    spec.write_text(spec.read_text().replace("epsilon: 6", "epsilon: 5"))
    code, said, err = uldp("export", out, "--to", tmp_path / "f.csv")
    assert (code, len(err.splitlines())) == (1, 1)
    assert "is not the spec of the job that made the estimates" in err
    assert said == f"wrote {tmp_path / 'f.csv'}: 0 rows of 3 estimates\n"
