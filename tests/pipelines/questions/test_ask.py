"""The command ``uldp ask``: the kept counts of a results folder, or of one far away, give answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import memory
from tests.pipelines.command import SPEC, Run


@pytest.fixture(scope="session")
def results(simulated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a stream of three hours."""
    from click.testing import CliRunner

    from uldp.pipelines.cli import cli

    out = tmp_path_factory.mktemp("asked") / "results"
    done = CliRunner().invoke(cli, ["backfill", "--spec", SPEC, "--from", str(simulated), "--to", str(out)])
    assert done.exit_code == 0, done.output
    return out


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_day_has_the_reports_of_its_windows(uldp: Run, results: Path) -> None:
    _, hours, _ = uldp("show", results, "--json")
    code, text, _ = uldp("ask", results, "--every", "1d", "--zone", "Europe/Berlin", "--json")
    answers = lines(text)
    assert code == 0
    assert {each["n"] for each in answers} == {sum(each["n"] for each in lines(hours))}
    assert {each["start"] for each in answers} == {"2026-01-04T23:00:00Z"}
    assert {each["windows"] for each in answers} == {len(lines(hours))}


def test_the_text_names_days_and_what_is_assumed(uldp: Run, results: Path) -> None:
    code, text, _ = uldp("ask", results, "--every", "1d", "--top", "3")
    assert code == 0
    assert text.startswith("manhattan-checkins v1  2026-01-05  (2026-01-05T00:00:00Z to 2026-01-06T00:00:00Z)\n")
    assert "share, in %, the 3 largest of 625" in text
    assert text.splitlines()[-1].startswith("assumed: ")


def test_answers_are_written_as_rows(uldp: Run, results: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    code, text, _ = uldp("ask", results, "--every", "1d", "--to", tmp_path / "x.parquet")
    _, as_json, _ = uldp("ask", results, "--every", "1d", "--json")
    rows = pq.read_table(tmp_path / "x.parquet").to_pylist()
    assert (code, text) == (0, f"wrote {tmp_path / 'x.parquet'}: {len(rows):,} answers\n")
    assert [row["estimate"] for row in rows] == [line["estimate"] for line in lines(as_json)]


def test_results_far_away_give_the_same_answers(uldp: Run, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in results.rglob("*"):
        if file.is_file():
            monkeypatch.setitem(memory.FILES, f"mem://b/{file.relative_to(results)}", file.read_bytes())
    assert uldp("ask", "mem://b", "--every", "1w") == uldp("ask", results, "--every", "1w")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--zone", "Mars/Base", "--every", "1d"], "no time zone 'Mars/Base'"),
        (["--collection", "manhattan"], "the results have no collection 'manhattan'"),
        (["--to", "answers.csv"], "answers.csv: answers are written to a file that ends in .parquet"),
    ],
)
def test_a_mistake_is_one_clear_line(uldp: Run, results: Path, arguments: list[str], message: str) -> None:
    code, out, errors = uldp("ask", results, *arguments)
    assert (code, out) == (1, "")
    assert message in errors
    assert errors.count("\n") == 1
