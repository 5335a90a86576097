"""The command ``uldp ask``: the kept counts of a results folder, or of one far away, give answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import memory
from tests.pipelines.command import Run, counted


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_day_has_the_reports_of_its_windows(uldp: Run, backfilled: Path) -> None:
    _, hours, _ = uldp("show", backfilled, "--json")
    code, text, _ = uldp("ask", backfilled, "--every", "1d", "--zone", "Europe/Berlin", "--json")
    answers = lines(text)
    assert code == 0
    assert {each["n"] for each in answers} == {sum(each["n"] for each in lines(hours))}
    assert {each["start"] for each in answers} == {"2026-01-04T23:00:00Z"}
    assert {each["windows"] for each in answers} == {len(lines(hours))}


def test_the_text_names_days_and_what_is_assumed(uldp: Run, backfilled: Path) -> None:
    code, text, _ = uldp("ask", backfilled, "--every", "1d", "--top", "3")
    assert code == 0
    assert text.startswith("manhattan-checkins v1  2026-01-05  (2026-01-05T00:00:00Z to 2026-01-06T00:00:00Z)\n")
    assert "share, in %, the 3 largest of 625" in text
    assert text.splitlines()[-1].startswith("assumed: ")


def test_all_readers_say_what_values_spend_that_change_though_responses_are_kept(uldp: Run, tmp_path: Path) -> None:
    keys = {"collection": "kept", "version": 1, "domain": {"size": 3}, "window": {"size": "1h"}, "sensitive": "all"}
    keys["mechanism"] = {"name": "rr", "epsilon": 1, "lasting_epsilon": 2.5}
    out = counted(tmp_path, keys, "value,weight\n0,1\n1,2\n2,1\n", 1200)
    asked = ("ask", out, "--every", "1d")
    (hours,) = {each["windows"] for each in lines(uldp(*asked, "--json")[1])}
    whatever = hours // 2 * 2.5 + hours % 2
    assert hours > 2
    said = f"epsilon 2.5 at most on a value that stays, {whatever:g} on values that change"
    assert f"  spent  {said}, by a user who reports as often as possible\n" in uldp(*asked)[1]
    _, explained, _ = uldp(*asked, "--explain", "2026-01-05", "1")
    assert f"privacy     a user with a report in each window has spent {said}\n" in explained
    found = {(each["spent"], each["spent_one_value"]) for each in lines(uldp(*asked, "--json")[1])}
    assert found == {(whatever, 2.5)}


def test_answers_are_written_as_rows(uldp: Run, backfilled: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    code, text, _ = uldp("ask", backfilled, "--every", "1d", "--to", tmp_path / "x.parquet")
    _, as_json, _ = uldp("ask", backfilled, "--every", "1d", "--json")
    rows = pq.read_table(tmp_path / "x.parquet").to_pylist()
    assert (code, text) == (0, f"wrote {tmp_path / 'x.parquet'}: {len(rows):,} answers\n")
    assert [row["estimate"] for row in rows] == [line["estimate"] for line in lines(as_json)]


def test_results_far_away_give_the_same_answers(uldp: Run, backfilled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in backfilled.rglob("*"):
        if file.is_file():
            monkeypatch.setitem(memory.FILES, f"mem://b/{file.relative_to(backfilled)}", file.read_bytes())
    assert uldp("ask", "mem://b", "--every", "1w") == uldp("ask", backfilled, "--every", "1w")


def test_a_sum_is_that_of_its_values(uldp: Run, backfilled: Path, tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("value,group\n360,centre\n338,centre\n260,other\n")
    groups = "--groups", tmp_path / "groups.csv", "--where", "36?", "--sum", "360,338"
    code, text, _ = uldp("ask", backfilled, "--every", "1d", *groups, "--json")
    answers = {each["label"]: each for each in lines(text)}
    assert code == 0
    assert answers.keys() == {"centre", "other", "36?", "360,338"}
    assert answers["centre"]["estimate"] == answers["360,338"]["estimate"] > answers["other"]["estimate"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--zone", "Mars/Base", "--every", "1d"], "no time zone 'Mars/Base'"),
        (["--collection", "manhattan"], "the results have no collection 'manhattan'"),
        (["--to", "answers.csv"], "answers.csv: answers are written to a file that ends in .parquet"),
        (["--sum", "360,zzz"], "no value 'zzz'"),
        (["--where", "nowhere*"], "--where 'nowhere*' matches no value"),
        (["--groups", "nowhere.csv"], "--groups nowhere.csv: "),
        (["--compare", "2026-01-05T09", "2026-01-05T09"], "have reports in common"),
        (["--compare", "2026", "2026-01-05T09"], "'2026' is the beginning of 3 times; write one of: 2026-01-05T09"),
        (
            ["--compare", "2026-01-05T09", "2026-01-05T10", "--same-devices"],
            "devices keep no responses without lasting",
        ),
        (["--range", "10:900"], "--range '10:900': 900 is outside of the domain 0 to 624"),
        (["--quantile", "0.5"], "urr has no quantiles; tree has, and block"),
        (["--compare", "v7", "2026-01-05T09"], "'v7': no such version has counts here; there are v1 of manhattan"),
        (
            ["--compare", "@shop", "2026-01-05T09"],
            "'@shop': no such collection as 'shop' has counts here; there are v1",
        ),
        (["--explain", "2026-01-05T09", "nobody"], "no value or tag 'nobody'"),
        (
            ["--over", "time", "--last", "2"],
            "smoothing needs 3 windows or more with counts; leave out --over, or choose",
        ),
        (["--same-devices"], "--same-devices is about two times; add --compare W1 W2 (see uldp ask --help)"),
        (["--range", "1:2", "--sum", "1"], "--range and --quantile are a question of their own; leave out the other"),
        (
            ["--explain", "2026-01-05T09", "home", "--sum", "1,2"],
            "--explain is a question of its own, and its answer is text; leave",
        ),
        (["--over", "time", "--sum", "360"], "--over is a question of its own, about each value; leave out the"),
    ],
)
def test_a_mistake_is_one_clear_line(uldp: Run, backfilled: Path, arguments: list[str], message: str) -> None:
    code, out, errors = uldp("ask", backfilled, *arguments)
    assert (code, out) == (2 if "(see uldp ask --help)" in errors else 1, "")
    assert message in errors
    assert errors.count("\n") == 1


def test_two_folders_are_compared(uldp: Run, backfilled: Path) -> None:
    """The same reports in both: each difference is 0, as if the users were others."""
    names = "2026-01-05T09", "2026-01-05T09@manhattan-checkins:v1"
    code, text, _ = uldp("ask", backfilled, "--compare", *names, "--with", backfilled, "--json")
    assert code == 0
    assert {each["estimate"] for each in lines(text)} == {0.0}
    code, _, errors = uldp("ask", backfilled, "--compare", *names)
    assert (code, "have reports in common" in errors) == (1, True)
    code, _, errors = uldp("ask", backfilled, "--with", backfilled)
    assert (code, "--with is where the second time of a comparison is" in errors) == (2, True)


@pytest.mark.parametrize(
    ("place", "code", "message"),
    [
        ("nowhere", 1, "nowhere: no such file or directory; give a directory that holds results"),
        ("mem://nowhere", 1, "mem://nowhere: holds no specs and no counts; give the URL of results"),
        ("kafka:h:1/t", 2, "results go to a directory, or to a URL"),
    ],
)
def test_what_holds_no_results_is_refused(uldp: Run, place: str, code: int, message: str) -> None:
    got, out, errors = uldp("ask", place)
    assert (got, out, errors.count("\n")) == (code, "", 1)
    assert message in errors


def test_a_name_far_away_leads_out_of_no_folder(uldp: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(memory.FILES, "mem://b/specs/../../x", b"")
    code, _, errors = uldp("ask", "mem://b")
    assert code == 1
    assert "a name with .. is none that a job writes" in errors
