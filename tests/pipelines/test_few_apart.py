"""The cells of windows with too few reports are in a folder of their own, and nobody adds windows without them."""

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from stat import S_IMODE
from typing import Any

import fastavro
import numpy as np
import pytest

from tests import build
from tests.build import HOUR, START
from tests.pipelines.command import Run
from uldp.collector.collections import serve
from uldp.collector.estimating import estimates_of
from uldp.collector.sealing import WindowSum, flags_of, p_values_of, seal
from uldp.pipelines.jobs.identity import JobIdentity
from uldp.pipelines.jobs.written import mark_open_windows
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.pipelines.results.prune import prune
from uldp.schemas.estimate import Estimate
from uldp.schemas.flags import Flag
from uldp.schemas.pane import Accounting, Pane, PaneHeader, PaneKind
from uldp.schemas.records import Message, Report
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.results.write import write_estimates, write_statistics

SPEC = """
collection: c
version: 1
domain: {size: 3}
mechanism: {name: identity}
window: {size: 1h}
"""
#: Reports of value 1 by window: too few, enough, none.
WINDOWS = {START: 99, START + HOUR: 100}


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    (tmp_path / "spec.yaml").write_text(SPEC)
    made = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    ids = iter(range(1000))
    times = [time for time, n in WINDOWS.items() for _ in range(n)]
    made.append([Message(Report("c", 1, next(ids).to_bytes(16, "big"), at, 1).encode(), at) for at in times])
    made.close()
    return made.path


def backfill(uldp: Run, stream: Path, *options: str | Path) -> str:
    folder = stream.parent
    command = "backfill", "--spec", folder / "spec.yaml", "--from", stream, "--to", folder / "out"
    code, text, _ = uldp(*command, *options)
    assert code == 0
    return text


@pytest.mark.parametrize("private", ["out", "private"])
def test_analysts_read_no_cells_of_few_reports(private: str, stream: Path, uldp: Run, tmp_path: Path) -> None:
    out, place = tmp_path / "out", tmp_path / private
    text = backfill(uldp, stream, "--private-to", place)
    assert "in all: 199 received = 199 counted + 0 duplicate + 0 late + 0 rejected" in text
    assert "no estimate is published of 1 window" in text
    records: list[Any] = []
    for path in out.glob("counts/*.avro"):
        with path.open("rb") as file:
            records += fastavro.reader(file)
    cells = {record["n"]: record["cells"] for record in records}
    assert cells[99] is None
    assert cells[100]["values"] == bytes([0, 100, 0])
    modes = {path.name: S_IMODE(path.stat().st_mode) for path in [place / "few", *place.glob("few/**/*")]}
    assert len(modes) == 2
    assert {mode for name, mode in modes.items() if not name.endswith(".avro")} == {0o700}
    assert [mode for name, mode in modes.items() if name.endswith(".avro")] == [0o600]
    code, shown, _ = uldp("show", out)
    assert code == 0
    assert "n 99" in shown
    assert "flags: few_reports" in shown


def test_a_sum_of_windows_needs_the_cells_that_are_apart(stream: Path, uldp: Run, tmp_path: Path) -> None:
    out, private = tmp_path / "out", tmp_path / "private"
    backfill(uldp, stream, "--private-to", private)
    with pytest.raises(ResultsError, match=r"out: the counts of windows of too few reports are apart \(c v1 from"):
        ResultsFolder(out).statistics()
    with pytest.raises(ResultsError, match=r"apart .*/out/few does not hold them: restore it"):
        ResultsFolder(out, private=out).statistics()
    whole = newest(ResultsFolder(out, private=private).statistics())
    assert sum(pane.cells for pane in whole).tolist() == [0, 199, 0]  # type: ignore[union-attr]
    left_out: list[ResultsError] = []
    assert [pane.n for pane in ResultsFolder(out, left_out.append).statistics()] == [100]
    assert len(left_out) == 1
    assert sum((pane.accounting for pane in newest(ResultsFolder(out).panes())), Accounting()) == Accounting(199, 199)


def test_questions_sum_few_reports_for_who_may_read_them(stream: Path, uldp: Run, tmp_path: Path) -> None:
    out, private = tmp_path / "out", tmp_path / "private"
    backfill(uldp, stream, "--private-to", private)
    code, text, errors = uldp("ask", out, "--every", "1d", "--json")
    assert code == 0
    assert {json.loads(line)["n"] for line in text.splitlines()} == {100}
    assert errors == "left out of c v1: 1 window with 99 reports (few reports; --private sums them)\n"
    code, text, _ = uldp("ask", out, "--private", private, "--every", "1d")
    assert (code, text) == (0, f"{out}: no window of these has counts to answer from\n")


def few(n: int, kind: str = "on_time", revision: int = 0) -> Statistic:
    return build.pane([n, 0], kind, revision, flags=("few_reports",) if n < 100 else ())


def write(out: Path, *panes: Statistic) -> None:
    made: list[Estimate] = [build.estimate(pane, [1, 0], [0.1, 0.1]) for pane in panes if not pane.flags]
    for fn, elements in ((write_statistics(str(out), str(out)), panes), (write_estimates(str(out)), made)):
        fn.start_bundle()
        for element in elements:
            fn.process(element)
        fn.finish_bundle()


def test_a_window_that_grows_is_read_without_its_early_cells(tmp_path: Path) -> None:
    early, full = few(3, "early"), few(150, revision=1)
    write(tmp_path, early, full)
    assert ResultsFolder(tmp_path).statistics() == [full]
    assert ResultsFolder(tmp_path, private=tmp_path).statistics() == [early, full]
    assert [type(pane) for pane in ResultsFolder(tmp_path).panes()] == [PaneHeader, Statistic]


def test_a_stopped_job_marks_windows_whose_cells_are_apart(tmp_path: Path) -> None:
    write(tmp_path, few(3, "early"), few(4, "early", 1))
    assert mark_open_windows(tmp_path) == 1
    (pane,) = newest(ResultsFolder(tmp_path).panes())
    assert (type(pane), pane.flags) == (PaneHeader, ("few_reports", "incomplete"))
    (statistic,) = newest(ResultsFolder(tmp_path, private=tmp_path).statistics())
    assert (statistic.cells.tolist(), statistic.flags) == ([4, 0], ("few_reports", "incomplete"))


def test_prune_removes_cells_that_are_replaced_or_old(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_bytes(JobIdentity("stream", "s", "c", {}).encode())
    for pane in (few(3, "early"), few(4, "early", 1), few(5, revision=2)):
        write(tmp_path, pane)
    foreign = tmp_path / "few/notes.avro"
    foreign.write_bytes(b"")
    os.utime(foreign, (0, 0))
    day = 86_400
    pruned = prune(tmp_path, before=time.time() - day, damaged=lambda _: None)
    assert (pruned.panes, pruned.few) == (4, 0)
    assert [pane.n for pane in ResultsFolder(tmp_path, lambda _: None, private=tmp_path).statistics()] == [5]
    pruned = prune(tmp_path, before=time.time() + day, damaged=lambda _: None)
    assert (pruned.panes, pruned.few) == (0, 1)
    assert foreign.exists()
    assert [pane.n for pane in ResultsFolder(tmp_path).panes()] == [5]


def test_a_record_with_few_reports_of_a_variable_keeps_all_its_cells_apart(uldp: Run, tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(
        SPEC.replace("domain: {size: 3}", "domain: {record: {a: {size: 3}, b: {size: 3}}}").replace(
            "{name: identity}", "{name: sample-one, epsilon: 20.0, of: {a: {name: rr}, b: {name: rr}}}"
        )
    )
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    symbols = np.repeat([1, 4], [120, 30]).tolist()
    stream.append(
        [Message(Report("c", 1, n.to_bytes(16, "big"), START, s).encode(), START) for n, s in enumerate(symbols)]
    )
    stream.close()
    backfill(uldp, stream.path)
    (pane,) = ResultsFolder(tmp_path / "out").panes()
    assert (type(pane), pane.n) == (PaneHeader, 150)
    shown = json.loads(uldp("show", tmp_path / "out", "--json")[1])
    assert (shown["counts"], "few_of_variable" in shown["flags"]) == (None, True)
    assert {(tuple(table["of"]), table["n"]) for table in shown["tables"]} == {(("a",), 120)}
    (statistic,) = ResultsFolder(tmp_path / "out", private=tmp_path / "out").statistics()
    assert statistic.cells.sum() == 150


OF_TWO = {
    "domain": {"record": {"app": {"size": 3}, "hours": {"number": {"low": 0, "high": 8}}}},
    "mechanism": {"name": "sample-one", "epsilon": 1.0, "of": {"app": {"name": "rr"}, "hours": {"name": "duchi"}}},
}


@pytest.mark.parametrize(
    ("app", "hours", "raised"),
    [
        (50, 50, []),
        (50, 49, [Flag.FEW_OF_VARIABLE]),
        (50, 0, []),
        (49, 49, [Flag.FEW_REPORTS]),
        (49, 0, [Flag.FEW_REPORTS]),
    ],
)
def test_flags_and_estimates_of_a_record_agree(app: int, hours: int, raised: list[Flag]) -> None:
    (of,) = serve([build.spec(**OF_TWO, limits={"min_reports": 50})]).values()
    payloads = of.mechanism.perturb(np.repeat([0, 9], [app, hours]), np.random.default_rng(2))
    total = WindowSum.of(build.part(of.mechanism.statistic(payloads), Accounting(app + hours, app + hours)), 0)
    (p_values,) = p_values_of(of.protocol.decoder, [total])
    assert [flag for flag in flags_of(of, total, p_values) if flag is not Flag.IMPROBABLE_STRATA] == raised
    sealed = seal(of, total, 0, HOUR, Pane(PaneKind.ON_TIME, 0), p_values)
    tables = [table.n for estimate in estimates_of(of, sealed) for table in estimate.tables]
    assert tables == [each for each in (app, hours) if each >= 50]
    # Whoever merges windows makes a statistic without flags.
    assert all(estimate.tables for estimate in estimates_of(of, replace(sealed, flags=())))
