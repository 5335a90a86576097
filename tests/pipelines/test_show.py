"""What readers of results show: windows that are chosen, names that are not there, intervals that assume forgers."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests import build
from tests.pipelines.command import Run
from tests.pipelines.report.test_page import Fired, save
from uldp.collector.collections import serve
from uldp.collector.estimating import estimates_of
from uldp.pipelines.results.soundness import sound_estimate
from uldp.schemas.estimate import Estimate
from uldp.schemas.rows import rows
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.specfile import SpecError
from uldp.schemas.statistic import Statistic


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


KEYS = build.MINIMAL | {"domain": {"size": 5}, "mechanism": {"name": "rr", "epsilon": 1.0}}
FORGED = KEYS | {"assume_forgers": 0.01}


def published(keys: dict[str, object]) -> tuple[Statistic, Estimate]:
    spec = CollectionSpec.parse(keys)
    statistic = build.pane([3000, 2500, 2000, 1500, 1000], key=spec.key, device_digest=spec.device_digest)
    (estimate,) = estimates_of(serve([spec])[spec.key], statistic)
    return statistic, estimate


def test_forgers_are_of_the_reading_half() -> None:
    assert CollectionSpec.parse(FORGED).device_digest == CollectionSpec.parse(KEYS).device_digest


@pytest.mark.parametrize("share", [0, 1, -0.1])
def test_a_share_of_forgers_is_between_0_and_1(share: float) -> None:
    with pytest.raises(SpecError, match="assume_forgers: must be"):
        CollectionSpec.parse(KEYS | {"assume_forgers": share})


def test_readers_show_both_intervals(uldp: Run, tmp_path: Path) -> None:
    statistic, estimate = published(FORGED)
    spec = CollectionSpec.parse(FORGED)
    save(tmp_path / "out", FORGED, Fired(statistic, estimate))
    (share,) = estimate.tables
    assert sound_estimate(estimate.to_avro()) == estimate
    assert share.low_forged is not None
    assert share.high_forged is not None
    ends = f"{100 * share.low_forged[0]:.1f} to {100 * share.high_forged[0]:.1f}"
    code, out, _ = uldp("show", tmp_path / "out")
    assert (code, f"[{ends}]" in out, "if up to 1 % of all reports are forged" in out) == (0, True, True)
    code, out, _ = uldp("report", tmp_path / "out", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert (code, ends in page, "If 1 % are forged" in page) == (0, True, True)
    row, *_ = rows(estimate, spec)
    assert (row["low_forged"], row["high_forged"]) == (share.low_forged[0], share.high_forged[0])


def test_a_check_says_how_much_forgers_move(uldp: Run, tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(str(FORGED))
    _, out, _ = uldp("check", tmp_path / "spec.yaml")
    assert "allow 1 % of all reports to be forged" in out
    assert "and 1 % of them by up to 3.91" in out
