"""The command ``uldp ask`` about strings: other candidates, and another search, from the same counts."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.pipelines.command import Run

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
    from click.testing import CliRunner

    from uldp.pipelines.cli import cli

    folder = tmp_path_factory.mktemp("words")
    (folder / "words.yaml").write_text(yaml.safe_dump(WORDS), encoding="utf-8")
    rows = ["value,weight", "cab,300", "bad,300", "faced,300", *(f"{text},{100 / len(RARE)}" for text in RARE)]
    (folder / "words.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    spec, stream, out = folder / "words.yaml", folder / "stream", folder / "results"
    run = ["simulate", spec, "--truth", folder / "words.csv", "--users", 12_000, "--to", stream, "--batch-size", 1000]
    for command in (run, ["backfill", "--spec", spec, "--from", stream, "--to", out]):
        done = CliRunner().invoke(cli, [str(each) for each in command])
        assert done.exit_code == 0, done.output
    return out


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
