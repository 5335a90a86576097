"""The page is live: it follows the folder, and what is in the folder stays text."""

import re
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import build
from tests.pipelines.results.samples import ESTIMATE, SPECS, folder_of, write_estimate
from tests.pipelines.serve.serving import Serving
from uldp.pipelines.live import watch as watch_module
from uldp.pipelines.live.watch import Watch


def watch_of(folder: Path) -> Watch:
    return Watch(folder, least=0.0, share=1.0)


def states(page: str) -> list[str]:
    return re.findall(r'<body data-state="([0-9a-f]+-\d+)">', page)


def test_the_only_folder_is_the_first_page(site: Serving) -> None:
    assert site.get("/").headers["location"] == "results/results/"
    assert "Estimates of manhattan-checkins" in site.get("/results/results/").text


def test_the_page_knows_the_state_that_it_shows(site: Serving) -> None:
    page = site.get("/results/results/")
    (state,) = states(page.text)
    assert site.get("/results/results/state").json() == {"state": state}
    assert page.headers["etag"] == f'"{state}"'
    assert "connect-src 'self'" in page.text


def test_the_page_takes_the_options_of_the_report(site: Serving) -> None:
    assert "line" in site.get("/results/results/?last=1&value=360").text
    refused = site.get("/results/results/?value=of-no-cell")
    assert (refused.status, "of-no-cell" in refused.text) == (400, True)


def test_a_page_shows_the_newest_windows_that_fit(site: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "For others, add" not in site.get("/results/results/").text
    monkeypatch.setattr("uldp.pipelines.serve.pages.MOST_WINDOWS", 2)
    page = site.get("/results/results/?every=1d").text
    assert "These are 2 of 3 windows, the newest 2 of each collection. For others, add ?since=" in page
    assert ("10:00" in page, "09:00" in page) == (True, False)


def test_nothing_is_written(results: Path, site: Serving) -> None:
    def listing() -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in results.rglob("*")}

    before = listing()
    for path in ("/results/results/", "/api/results/estimates", "/api/results/ask?every=1d", "/api/results/rows"):
        assert site.get(path).status == 200
    assert listing() == before


def test_a_new_pane_changes_the_state_and_the_answers(tmp_path: Path) -> None:
    mine = replace(ESTIMATE, device_digest=SPECS["c", 1].device_digest)
    write_estimate(folder_of(tmp_path / "r").path, mine)
    with Serving(tmp_path / "r") as serving:
        first = serving.get("/api/r/rows")
        assert {row["estimator"] for row in first.json()["rows"]} == {"empirical"}
        write_estimate(tmp_path / "r", replace(mine, estimator="mle"))
        second = serving.get("/api/r/rows", If_None_Match=first.headers["etag"])
    assert second.status == 200
    assert {row["estimator"] for row in second.json()["rows"]} == {"empirical", "mle"}


def test_a_state_changes_with_each_file_and_with_nothing_else(tmp_path: Path) -> None:
    folder_of(tmp_path)
    watch = watch_of(tmp_path)
    seen = [watch.state()]
    for estimator in ("mle", "empirical"):
        write_estimate(tmp_path, replace(ESTIMATE, estimator=estimator))
        seen.append(watch.state())
    (tmp_path / "specs" / "c-v1" / "spec.yaml").touch()
    assert len(set(seen)) == 3


def test_a_file_written_in_the_tick_of_a_look_is_not_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_estimate(tmp_path)
    watch = watch_of(tmp_path)
    now = path.parent.stat().st_mtime_ns
    monkeypatch.setattr(watch_module, "time", SimpleNamespace(time_ns=lambda: now, monotonic=time.monotonic))
    seen = watch.state()
    # No time changes with a second file in this tick; but the look later knows that the first one was too early.
    monkeypatch.setattr(watch_module, "time", SimpleNamespace(time_ns=lambda: now + 10**9, monotonic=time.monotonic))
    assert watch.state() != seen


def test_a_look_costs_the_same_for_many_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_estimate(tmp_path)
    clock = [100.0]
    # Not the clock of the process: the loop of a server in another thread would wait for hours.
    monkeypatch.setattr(watch_module, "time", SimpleNamespace(time_ns=time.time_ns, monotonic=lambda: clock[0]))
    watch = Watch(tmp_path, least=1.0)
    first = watch.state()
    write_estimate(tmp_path, replace(ESTIMATE, estimator="mle"))
    assert watch.state() == first
    clock[0] += 1.0
    assert watch.state() != first


def test_two_folders_have_names_of_their_own(tmp_path: Path) -> None:
    for name in ("a/results", "b/results", "c/<b>&'"):
        write_estimate(folder_of(tmp_path / name).path)
    with Serving(*(tmp_path / name for name in ("a/results", "b/results", "c/<b>&'"))) as serving:
        assert list(serving.folders) == ["results", "results-2", "<b>&'"]
        page = serving.get("/").text
        assert "<b>" not in page
        links = re.findall('href="(results/[^"]*)"', page)
        assert links == ["results/results/", "results/results-2/", "results/%3Cb%3E%26%27/"]
        for link in links:
            assert serving.get(f"/{link}").status == 200


def test_hostile_labels_stay_text(tmp_path: Path) -> None:
    label = "<script>alert(1)</script>\u202e"
    spec = build.spec(domain={"labels": [label, "b", "c"]})
    estimate = replace(ESTIMATE, device_digest=spec.device_digest, tables=ESTIMATE.tables[:1])
    write_estimate(folder_of(tmp_path / "r", specs={spec.key: spec}).path, estimate)
    with Serving(tmp_path / "r") as serving:
        page = serving.get("/results/r/")
        rows = serving.get("/api/r/rows")
        refused = serving.get("/api/r/ask?sum=%3Cscript%3E%E2%80%AE")
    assert page.status == 200
    assert "alert(1)" in page.text
    assert "<script>alert" not in page.text
    assert rows.headers["content-type"] == "application/json"
    assert rows.json()["rows"][0]["label"] == "<script>alert(1)</script>\N{REPLACEMENT CHARACTER}"
    assert refused.headers["content-type"] == "application/json"


def test_a_damaged_file_is_named_below_the_folder(tmp_path: Path) -> None:
    write_estimate(folder_of(tmp_path / "r").path)
    path = write_estimate(tmp_path / "r", replace(ESTIMATE, estimator="mle"))
    path.write_bytes(b"damaged")
    with Serving(tmp_path / "r") as serving:
        answer = serving.get("/api/r/estimates").json()
        page = serving.get("/results/r/").text
    assert len(answer["damaged"]) == 1
    assert answer["damaged"][0].startswith("estimates/c-v1.")
    assert str(tmp_path) not in str(answer)
    assert "1 file of these results cannot be read" in page


def test_a_folder_without_results_yet_says_so(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    with Serving(tmp_path / "r") as serving:
        page = serving.get("/results/r/")
        assert (page.status, 'http-equiv="refresh"' in page.text) == (503, True)
        assert serving.get("/healthz").json() == {"status": "ok", "gone": []}
        (tmp_path / "r").rmdir()
        assert serving.get("/healthz").status == 503
