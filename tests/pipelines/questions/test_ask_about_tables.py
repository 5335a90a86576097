"""The command ``uldp ask`` about tables of attributes, and about strings: other candidates, and another search."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.pipelines.command import Run, counted, run

CRASHES: dict[str, Any] = {
    "collection": "crashes",
    "version": 1,
    "domain": {"record": {"version": {"size": 3}, "crash": {"size": 2}, "os": {"size": 2}}},
    "mechanism": {"name": "marginals", "epsilon": 2.0, "views": [["version", "crash"], ["os", "crash"]]},
    "window": {"size": "1d"},
}
NO_TABLE = "collection crashes version 1 has no such table"
TRUTH = "version,crash,os,weight\n0,0,0,3\n1,1,1,2\n2,0,1,3\n2,1,0,2\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the same reports: in ``asked`` of a spec that asks for a conditional table, in ``bare`` of another."""
    folder = tmp_path_factory.mktemp("crashes")
    counted(folder, CRASHES, TRUTH, 4000).rename(folder / "bare")
    (folder / "asked.yaml").write_text(yaml.safe_dump(CRASHES | {"given": [["version", "crash"]]}, sort_keys=False))
    run("backfill", "--spec", folder / "asked.yaml", "--from", folder / "stream", "--to", folder / "asked")
    return folder


def answers(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_what_a_spec_asks_for_given_another_is_the_same_asked_later(uldp: Run, folder: Path) -> None:
    by_spec = [each for each in answers(uldp("ask", folder / "asked", "--json")[1]) if each["quantity"] == "given"]
    question = ("--table", "crash,version", "--given", "version", "--json")
    assert [each["label"] for each in by_spec] == ["0 x 0", "0 x 1", "1 x 0", "1 x 1", "2 x 0", "2 x 1"]
    assert answers(uldp("ask", folder / "bare", *question)[1]) == by_spec
    assert answers(uldp("ask", folder / "asked", *question)[1]) == by_spec


@pytest.mark.parametrize(("table", "of"), [("os", "os"), ("crash,version", "version x crash")])
def test_only_the_named_table_is_answered(uldp: Run, folder: Path, table: str, of: str) -> None:
    every = answers(uldp("ask", folder / "asked", "--json")[1])
    wanted = [each for each in every if each["attribute"] == of and each["quantity"] == "share"]
    assert wanted
    assert answers(uldp("ask", folder / "asked", "--table", table, "--json")[1]) == wanted


@pytest.mark.parametrize(
    ("question", "error"),
    [
        (["--table", "os,crsh"], "--table: no attribute 'crsh' (did you mean 'crash'?)"),
        (
            ["--table", "os,version"],
            f"--table 'os,version': {NO_TABLE}; there are version; crash; os; version,crash; crash,os",
        ),
        (["--table", '"'], """--table '"': write attributes with commas between them: A,B"""),
        (
            ["--table", "os,crash", "--given", "version"],
            "--given 'version': write two attributes in --table, one of which is given",
        ),
        (
            ["--table", "os,version", "--given", "os"],
            "--given: collection crashes version 1: no view holds os and version; add views: [os, version]",
        ),
        (["--given", "os"], "--given is about a table of two attributes; add --table A,B (see uldp ask --help)"),
        (
            ["--table", "os", "--where", "os=1"],
            "--table is a question of its own; leave out the other options (see uldp ask --help)",
        ),
    ],
)
def test_a_wrong_table_is_one_clear_line(uldp: Run, folder: Path, question: list[str], error: str) -> None:
    code, text, errors = uldp("ask", folder / "bare", *question)
    assert code != 0
    assert (text, errors) == ("", f"error: {error}\n")


def test_a_collection_of_one_variable_has_no_tables_of_attributes(uldp: Run, backfilled: Path) -> None:
    code, _, errors = uldp("ask", backfilled, "--table", "os")
    assert (code, errors.count("\n")) == (1, 1)
    assert errors.endswith("has no such table, because it collects no record; leave out --table\n")


WORDS = {
    "collection": "words",
    "version": 1,
    "domain": {"strings": {"longest": 6, "alphabet": "a-g"}},
    "mechanism": {"name": "prefixes", "epsilon": 5.0, "cohorts": 64, "step": 2, "depth": 3},
    "candidates": ["gag"],
    "window": {"size": "1h"},
}
#: 600 rare strings with a tenth of the users.
RARE = {"".join(text) for text in np.random.default_rng(1).choice(list("abcdefg"), (600, 6)).tolist()}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = ["value,weight", "cab,300", "bad,300", "faced,300", *(f"{text},{100 / len(RARE)}" for text in RARE)]
    return counted(tmp_path_factory.mktemp("words"), WORDS, "\n".join(rows) + "\n", 12_000, "--batch-size=1000")


def shares(text: str) -> dict[str, float]:
    """The estimates of a day, by string."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
    return {line["label"]: line["estimate"] for line in lines if line["quantity"] == "share"}


def test_a_day_is_searched_as_a_whole(uldp: Run, results: Path) -> None:
    code, text, _ = uldp("ask", results, "--every", "1d", "--json")
    assert code == 0
    assert shares(text).keys() == {"gag", "cab", "bad", "faced"}
    assert shares(text)["cab"] == pytest.approx(0.3, abs=0.04)


def test_other_strings_are_asked_for_and_looked_for(uldp: Run, results: Path, tmp_path: Path) -> None:
    (tmp_path / "asked.csv").write_text("value\nbad\nKIOSK\n", encoding="utf-8")
    code, text, _ = uldp(
        "ask", results, "--every", "1d", "--candidates", tmp_path / "asked.csv", "--discover", 8, 1, "--json"
    )
    assert code == 0
    assert {"bad", "KIOSK"} <= shares(text).keys()
    assert len(shares(text)) <= 3


@pytest.mark.parametrize(
    ("written", "error"),
    [
        ("wert\na\n", "error: --candidates: {file}: line 1: 'wert' must be the header value\n"),
        (
            "value\n1234567\n",
            "error: --candidates: {file}: value 1, '1234567': the string has 7 bytes of UTF-8, and the",
        ),
        (None, "error: --candidates: {file}: No such file or directory; check the path\n"),
    ],
)
def test_a_wrong_file_of_candidates_is_one_clear_line(
    uldp: Run, results: Path, tmp_path: Path, written: str | None, error: str
) -> None:
    file = tmp_path / "asked.csv"
    if written is not None:
        file.write_text(written, encoding="utf-8")
    code, text, errors = uldp("ask", results, "--candidates", file)
    assert (code, text) == (1, "")
    assert errors.startswith(error.format(file=file))
    assert errors.count("\n") == 1


@pytest.mark.parametrize("option", [("--discover", 4, 4), ("--candidates", "asked.csv")])
def test_collections_without_strings_refuse_both(uldp: Run, backfilled: Path, option: tuple[Any, ...]) -> None:
    code, _, errors = uldp("ask", backfilled, *option)
    assert code == 1
    (line,) = errors.splitlines()
    assert line.startswith(f"error: {option[0]}: collection manhattan-checkins version 1: ")
    assert line.endswith("has no strings for this; choose another with --collection")
