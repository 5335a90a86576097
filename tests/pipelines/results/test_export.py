"""Estimates as rows: what each row says, and that files of all three formats say the same."""

import csv
import sys
import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from tests import build
from tests.build import HOUR, START
from tests.pipelines.results.samples import ESTIMATE
from uldp.pipelines.results.export_files import _cell, write_rows
from uldp.schemas import rows as rows_module
from uldp.schemas.errors import RequestError
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import Accounting
from uldp.schemas.rows import COLUMNS
from uldp.schemas.specs.budget import Budget
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import Basis, Table

SPEC = build.spec(domain={"labels": ["red", "green", "blue"]})
ENDINGS = [".parquet", ".arrow", ".csv"]


def interval(low: list[float], high: list[float], **fields: Any) -> dict[str, Any]:
    return {"low": np.array(low), "high": np.array(high), "basis": Basis.EXACT, "n": 100} | fields


UNBIASED = np.array([-0.1, 0.35, 0.75])
SHARE = build.table(
    "share", [0.2, 0.3, 0.5], [0.01, 0.02, 0.03], **interval([0.1, 0.2, 0.4], [0.3, 0.4, 0.6], unbiased=UNBIASED)
)
VISIBLE = build.table(
    "visible", [0.1, 0.2, 0.3], [0.01] * 3, **interval([0, 0.1, 0.2], [0.2, 0.3, 0.4], unbiased=UNBIASED / 2)
)
BAND = build.table("band", [0.5, 0.6, 0.7], [0.01] * 3, **interval([0, 0.1, 0.2], [0.6, 0.7, 0.8]))
HIDDEN = build.table("hidden", [0.4], [0.02], keys=("home",))
BOUND = build.table("bound", [0.8], [0.0])
WITH_TAGS = replace(ESTIMATE, tables=(VISIBLE, SHARE, BAND, HIDDEN, BOUND))


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a file as Python's values; those of CSV as text."""
    match path.suffix:
        case ".parquet":
            rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        case ".arrow":
            rows = pa.ipc.open_file(path).read_all().to_pylist()
        case _:
            with path.open(encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
    return rows


def exported(path: Path, *estimates: Estimate, spec: CollectionSpec = SPEC) -> list[dict[str, Any]]:
    assert write_rows(path, [(estimate, spec) for estimate in estimates]) == len(read(path))
    return read(path)


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_a_share_has_all_that_is_known_of_its_value(ending: str, tmp_path: Path) -> None:
    budget = Budget.model_validate({"epsilon": 4, "every": "30d"})
    rows = exported(tmp_path / f"f{ending}", replace(WITH_TAGS, budget=budget))
    assert rows[1] == {
        "collection": "c",
        "version": 1,
        "device_digest": ESTIMATE.device_digest,
        "window_start": datetime(2026, 1, 1, 9, tzinfo=UTC),
        "window_end": datetime(2026, 1, 1, 10, tzinfo=UTC),
        "pane": "on_time",
        "revision": 2,
        "mechanism": "urr",
        "epsilon": 1.5,
        "lasting_epsilon": None,
        "budget_epsilon": 4.0,
        "budget_days": 30.0,
        "shuffle_epsilon": 0.25,
        "shuffle_delta": 1e-6,
        "estimator": "empirical",
        "assume_forgers": None,
        "quantity": "share",
        "attribute": None,
        "slice": None,
        "position": 1,
        "label": "green",
        "estimate": 0.3,
        "low": 0.2,
        "high": 0.4,
        "low_forged": None,
        "high_forged": None,
        "level": 0.95,
        "basis": "exact",
        "simultaneous": False,
        "unbiased": 0.35,
        "stderr": 0.02,
        "visible": 0.2,
        "visible_low": 0.1,
        "visible_high": 0.3,
        "visible_unbiased": 0.175,
        "visible_stderr": 0.01,
        "band_low": 0.1,
        "band_high": 0.7,
        "n": 100,
        "flags": "improbable_counts",
        "received": 107,
        "counted": 100,
        "duplicate": 4,
        "late": 2,
        "rejected": 1,
        "missing": 0,
    }


def test_rows_one_by_one_are_those_of_a_file(tmp_path: Path) -> None:
    of_colour = replace(SHARE, of=("colour",), keys=("\x1b[2J", "b", "c"), n=70)
    estimates = [WITH_TAGS, replace(WITH_TAGS, epsilon=None, flags=(), tables=(of_colour,))]
    single = [row for estimate in estimates for row in rows_module.rows(estimate, SPEC)]
    assert [{name: row[name] for name in COLUMNS} for row in single] == exported(tmp_path / "f.parquet", *estimates)
    assert {(row["device_digest"], row["age"]) for row in single} == {(ESTIMATE.device_digest, ESTIMATE.age_text)}
    assert [row["table_name"] for row in single] == ["share"] * 3 + ["hidden", "bound"] + ["share of colour"] * 3
    assert [row["label"] for row in single][:5] == ["red", "green", "blue", "home", None]
    assert len({tuple(row[name] for name in rows_module.KEY) for row in single}) == len(single)


NUMBERS: list[tuple[Table, list[tuple[str | None, float]]]] = [
    (build.table("mean", [7.5], [0.1]), [(None, 7.5)]),
    (build.table("quantile", [3.0, 9.0], [0.1, 0.1], keys=("0.5", "0.9")), [("0.5", 3.0), ("0.9", 9.0)]),
    (build.table("share", [0.5, 0.5], [0.1, 0.1]), [("0 to 12", 0.5), ("12 to 24", 0.5)]),
]


@pytest.mark.parametrize(("table", "entries"), NUMBERS)
def test_numbers_have_their_rows(table: Table, entries: list[tuple[str | None, float]], tmp_path: Path) -> None:
    hours = build.spec(domain={"number": {"low": 0, "high": 24}}, mechanism={"name": "duchi", "epsilon": 1.0})
    rows = exported(tmp_path / "f.parquet", replace(ESTIMATE, tables=(table,)), spec=hours)
    assert [(row["label"], row["estimate"]) for row in rows] == entries
    assert {row["visible"] for row in rows} == {None}


def test_intervals_that_allow_for_forgers_have_their_columns(tmp_path: Path) -> None:
    wider = replace(SHARE, low_forged=np.array([0.0, 0.1, 0.2]), high_forged=np.array([0.5, 0.6, 1.0]))
    rows = exported(tmp_path / "f.parquet", replace(ESTIMATE, assume_forgers=0.01, tables=(wider,)))
    columns = [(row["assume_forgers"], row["low_forged"], row["high_forged"]) for row in rows]
    assert columns == [(0.01, 0.0, 0.5), (0.01, 0.1, 0.6), (0.01, 0.2, 1.0)]


def test_what_is_not_there_is_null(tmp_path: Path) -> None:
    plain = replace(
        ESTIMATE, epsilon=None, shuffle=(), flags=(), tables=(build.table("share", [1.0, 0.0, 0.0], [0.0] * 3),)
    )
    row, *_ = exported(tmp_path / "f.parquet", plain)
    nulls = {name for name, value in row.items() if value is None}
    of_privacy = {"epsilon", "lasting_epsilon", "budget_epsilon", "budget_days", "shuffle_epsilon", "shuffle_delta"}
    of_tags = {"visible", "visible_low", "visible_high", "visible_unbiased", "visible_stderr", "band_low", "band_high"}
    of_intervals = {"low", "high", "low_forged", "high_forged", "assume_forgers", "level", "unbiased"}
    assert nulls == of_privacy | of_tags | of_intervals | {"attribute", "slice", "flags"}


def test_csv_says_what_parquet_says(tmp_path: Path) -> None:
    later = replace(WITH_TAGS, window_start=START + 1, window_end=START + HOUR, accounting=Accounting(3, 3), flags=())
    whole, text = (exported(tmp_path / f"f{ending}", WITH_TAGS, later) for ending in (".parquet", ".csv"))

    def cell(value: Any) -> str:
        match value:
            case None | bool():
                return {None: "", True: "true", False: "false"}[value]
            case datetime():
                kind = "milliseconds" if value.microsecond else "seconds"
                return value.isoformat(timespec=kind).replace("+00:00", "Z")
            case _:
                return str(value)

    assert text == [{name: cell(value) for name, value in row.items()} for row in whole]
    assert text[5]["window_start"] == "2026-01-01T09:00:00.001Z"


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("rows", [1, 2, 4, 7])
def test_batches_of_any_size_say_the_same(
    ending: str, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Estimates of two specs, so that later batches bring labels that the first does not have."""
    other = build.spec(collection="d", domain={"labels": ["tea", "milk", "blue"]})
    estimates = [(WITH_TAGS, SPEC), (replace(WITH_TAGS, collection="d", flags=("few_reports",)), other)]
    write_rows(tmp_path / f"whole{ending}", estimates)
    monkeypatch.setattr(rows_module, "MAX_ROWS", rows)
    write_rows(tmp_path / f"f{ending}", estimates)
    assert read(tmp_path / f"f{ending}") == read(tmp_path / f"whole{ending}")
    assert [row["label"] for row in read(tmp_path / f"f{ending}")][5:8] == ["tea", "milk", "blue"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_is_a_file_with_the_columns(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"f{ending}"
    assert exported(path) == []
    names = path.read_text().strip().split(",") if ending == ".csv" else None
    assert (names or (pq.read_schema(path) if ending == ".parquet" else pa.ipc.open_file(path).schema).names) == list(
        COLUMNS
    )


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_estimates_give_the_same_bytes(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"f{ending}"
    exported(path, WITH_TAGS)
    first = path.read_bytes()
    exported(path, WITH_TAGS)
    assert path.read_bytes() == first
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("label", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-1", "-1"),
        ("-", "'-"),
        (" =1+1", "' =1+1"),
        ("＝1+1", "'＝1+1"),
        ('a=b, "c"', 'a=b, "c"'),
    ],
)
def test_no_label_is_a_formula_of_a_spreadsheet(label: str, cell: str, tmp_path: Path) -> None:
    estimate = replace(ESTIMATE, tables=(replace(SHARE, keys=(label, "b", "c")),))
    assert exported(tmp_path / "f.csv", estimate)[0]["label"] == cell
    assert exported(tmp_path / "f.parquet", estimate)[0]["label"] == label


@pytest.mark.parametrize("text", ["\t=1+1", "\r=1+1", "\n=1+1"])
def test_no_cell_begins_with_a_character_that_a_spreadsheet_skips(text: str, tmp_path: Path) -> None:
    estimate = replace(ESTIMATE, tables=(replace(SHARE, keys=(text, "b", "c")),))
    assert exported(tmp_path / "f.csv", estimate)[0]["label"] == "\ufffd=1+1"
    assert _cell(text) == f"'{text}"


@pytest.mark.parametrize("ending", ENDINGS)
def test_no_label_commands_a_terminal(ending: str, tmp_path: Path) -> None:
    keys = ("\x1b[2J", "red\u202e", "a\nb,\ud800")
    rows = exported(tmp_path / f"f{ending}", replace(ESTIMATE, tables=(replace(SHARE, keys=keys),)))
    assert [row["label"] for row in rows] == ["\ufffd[2J", "red\ufffd", "a\ufffdb,\ufffd"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_memory_does_not_grow_with_the_number_of_windows(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_module, "MAX_ROWS", 1_000)
    size = 200
    spec = build.spec(domain={"size": size})
    share = build.table("share", np.zeros(size), np.zeros(size), **interval([0.0] * size, [1.0] * size))

    def peak(hours: int) -> int:
        starts = (START + i * HOUR for i in range(hours))
        estimates = (
            replace(ESTIMATE, tables=(share,), window_start=start, window_end=start + HOUR) for start in starts
        )
        tracemalloc.start()
        write_rows(tmp_path / f"f{ending}", ((estimate, spec) for estimate in estimates))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(1)  # imports what it needs
    assert peak(100) < 1.2 * peak(20)


def test_a_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(RequestError, match=r"^nowhere/f\.csv: there is no folder nowhere; create it$"):
        write_rows(Path("nowhere/f.csv"), [])


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_a_missing_package_has_its_remedy(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(
        RequestError, match=r"unlike \.csv, needs pyarrow.*; install it: pip install 'uldp-stream\[export\]"
    ):
        write_rows(tmp_path / f"f{ending}", [])
    assert exported(tmp_path / "f.csv", WITH_TAGS)[0]["label"] == "red"
