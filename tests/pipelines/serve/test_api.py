"""The JSON API says what the command line says."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.pipelines.command import Run
from tests.pipelines.serve.serving import Serving
from uldp.pipelines.results.folder import ResultsFolder


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("query", [{}, {"last": "1"}, {"since": "2026-01-05T10:30:00Z", "estimator": "mle"}])
def test_estimates_are_those_of_show(uldp: Run, site: Serving, results: Path, query: dict[str, str]) -> None:
    options = [part for name, value in query.items() for part in (f"--{name}", value)]
    _, shown, _ = uldp("show", results, "--json", *options)
    assert site.get(f"/api/results/estimates?{urlencode(query)}").json()["estimates"] == lines(shown) != []


@pytest.mark.parametrize(
    ("options", "query"),
    [
        ([], {}),
        (["--every", "1d", "--zone", "Europe/Berlin"], {"every": "1d", "zone": "Europe/Berlin"}),
        (["--sum", "360,338", "--where", "26?"], {"sum": "360,338", "where": "26?"}),
        (
            ["--compare", "2026-01-05T09", "2026-01-05T10", "--correct", "bh"],
            {"compare": ["2026-01-05T09", "2026-01-05T10"], "correct": "bh"},
        ),
        (["--over", "time"], {"over": "time"}),
    ],
)
def test_answers_are_those_of_ask(
    uldp: Run, site: Serving, results: Path, options: list[str], query: dict[str, Any]
) -> None:
    _, asked, _ = uldp("ask", results, "--json", *options)
    assert site.get(f"/api/results/ask?{urlencode(query, doseq=True)}").json()["answers"] == lines(asked) != []


def test_an_explanation_is_that_of_ask(uldp: Run, site: Serving, results: Path) -> None:
    _, asked, _ = uldp("ask", results, "--json", "--explain", "2026-01-05T09", "home")
    steps = site.get("/api/results/ask?explain=2026-01-05T09&explain=home").json()["steps"]
    assert [{"question": "explain"} | step for step in steps] == lines(asked) != []


def test_rows_are_those_of_the_values_that_are_asked_for(site: Serving) -> None:
    rows = site.get("/api/results/rows?quantity=share&label=360&label=338").json()["rows"]
    every = site.get("/api/results/rows").json()["rows"]
    assert [row for row in every if row["quantity"] == "share" and row["label"] in ("360", "338")] == rows
    assert len(rows) == 2 * 3
    assert all(row["low"] <= row["estimate"] <= row["high"] for row in rows)


def test_each_window_says_where_its_reports_went(site: Serving, results: Path) -> None:
    windows = site.get("/api/results/windows").json()["windows"]
    panes = ResultsFolder(results).panes()
    assert [each["window_start"] for each in windows] == [f"2026-01-05T{hour:02}:00:00Z" for hour in (9, 10, 11)]
    for each, pane in zip(windows, panes, strict=True):
        assert pane.accounting.to_avro().items() <= each.items()
        assert (each["n"], each["pane"]) == (pane.n, "on_time")
    assert site.get("/api/results/windows?last=1").json()["windows"] == windows[-1:]


def test_collections_have_their_windows(site: Serving) -> None:
    (collection,) = site.get("/api/results/collections").json()["collections"]
    assert (collection["collection"], collection["version"], collection["windows"]) == ("manhattan-checkins", 1, 3)
    assert collection["last_window_end"] == "2026-01-05T12:00:00Z"
    assert site.get("/api/folders").json() == {"folders": [{"folder": "results"}]}


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("estimates?lst=1", "did you mean 'last'?"),
        ("estimates?last=1&last=2", "last takes one value, got 2"),
        ("estimates?collection=manhatan-checkins", "did you mean 'manhattan-checkins'?"),
        ("estimates?since=yesterday", "is not an ISO 8601 time"),
        ("ask?every=1h", "write one of 1d, 1w, 1mo"),
        ("ask?same_devices=true", "same_devices is about two times"),
        ("ask?compare=2026-01-05T09&compare=2026-01-05T10&same_devices=true", "devices keep no responses"),
        ("ask?over=time&explain=2026&explain=home", "more than one question"),
        ("ask?sum=nothing", "no value 'nothing'"),
        (f"ask?sum={'x' * 4000}", "at most 100 names and 4,000 characters"),
    ],
)
def test_a_mistake_is_one_clear_line(site: Serving, query: str, says: str) -> None:
    answer = site.get(f"/api/results/{query}")
    assert answer.status == 400
    assert says in answer.json()["error"]


def test_what_has_not_changed_is_not_sent_again(site: Serving) -> None:
    first = site.get("/api/results/estimates?last=1")
    again = site.get("/api/results/estimates?last=1", If_None_Match=f'W/"other", {first.headers["etag"]}')
    assert (again.status, again.body) == (304, b"")
    assert site.get("/api/results/estimates?last=1", If_None_Match='"other"').body == first.body


@pytest.mark.parametrize("bound", ["MOST_CELLS", "MOST_ROWS", "MOST_BYTES", "MOST_WINDOWS"])
def test_an_answer_is_bounded(site: Serving, results: Path, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    question = "rows?quantity=share" if bound == "MOST_ROWS" else "estimates"
    with Serving(results) as small:
        whole = small.get(f"/api/results/{question}")
        assert whole.status == 200
    monkeypatch.setattr(f"uldp.pipelines.serve.api.{bound}", 2)
    with Serving(results) as small:
        answer = small.get(f"/api/results/{question}")
        assert answer.status == 413
        assert "ask for less: by collection, last, since, until or every" in answer.json()["error"]


def test_rows_in_a_pooled_question_are_the_commands(uldp: Run, site: Serving, results: Path) -> None:
    _, shown, _ = uldp("show", results, "--json", "--pooled")
    assert site.get("/api/results/estimates?pooled=true").json()["estimates"] == lines(shown)
