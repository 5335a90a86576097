"""The commands where the system lacks what Windows lacks, which ``tests.elsewhere`` takes away."""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.elsewhere import ROOT, elsewhere
from tests.pipelines.command import SPEC, TRUTH, Run
from tests.pipelines.test_init import VALUES
from uldp.pipelines.results.folder import ResultsFolder

#: What makes a stream without any job.
WRITING = [
    ["init", "survey.yaml"],
    ["check", "survey.yaml", "--users", "20000"],
    ["advise", SPEC, "--epsilon", "2", "--users", "20000"],
    ["schema"],
    ["device-table", SPEC],
    ["simulate", SPEC, "--truth", TRUTH, "--users", "3000", "--to", "first", "--seed", "1"],
    ["simulate", SPEC, "--truth", TRUTH, "--users", "3000", "--to", "second", "--seed", "2", "--malformed", "0.1"],
    ["simulate", "survey.yaml", "--truth", "never.csv", "--users", "2000", "--to", "never", "--seed", "3"],
    ["verify", "never", "--spec", "survey.yaml", "--value", "never"],
    ["decode", "first/000000000000.avro", "--spec", SPEC],
]
#: What jobs read, and what they write.
STREAMS, OUTS = ("first", "second"), ("one", "two")
#: What reads the results of jobs.
READING = [
    ["show", "one"],
    ["show", "one", "--json"],
    ["ask", "one", "--sum", "1,2"],
    ["ask", "one", "--every", "1d", "--zone", "Europe/Berlin"],
    ["export", "one", "--to", "rows.csv"],
    ["export", "one", "--to", "rows.parquet"],
    ["report", "one", "--out", "page.html"],
    ["rejected", "two"],
    ["replay", "two/rejected", "--to", "third"],
    ["late", "two"],
    ["audit", "first", "one"],
    ["merge", "one", "two", "--to", "both"],
    ["show", "both"],
    ["compact", "one"],
]
ANSWERS = "".join(f"{answer}\n" for answer in VALUES)
Commands = Sequence[Sequence[str]]


@pytest.fixture
def here(uldp: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, Commands], list[tuple[int, str, str]]]:
    """Run commands in a folder as this system is."""

    def run(folder: Path, commands: Commands) -> list[tuple[int, str, str]]:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "stdin", io.StringIO(ANSWERS))
        return [uldp(*arguments) for arguments in commands]

    return run


@pytest.mark.slow
def test_every_command_but_jobs_does_the_same(
    here: Callable[[Path, Commands], list[tuple[int, str, str]]], tmp_path: Path
) -> None:
    places = tmp_path / "there", tmp_path / "here"
    for place in places:
        place.mkdir()
        (place / "never.csv").write_text("value,tag,weight\nnever,,1\n", encoding="utf-8")
    there, own = places
    found = elsewhere(there, WRITING, ANSWERS, links=False)
    assert found == here(own, WRITING)
    assert [code for code, _, _ in found] == [0] * len(WRITING)

    jobs = [
        ["backfill", "--spec", SPEC, "--from", a, "--to", b, "--keep-ids"] for a, b in zip(STREAMS, OUTS, strict=True)
    ]
    assert here(there, jobs) == here(own, jobs)
    assert [sum(pane.n for pane in ResultsFolder(there / out).panes()) for out in OUTS] == [3000, 2663]
    shutil.rmtree(own)
    shutil.copytree(there, own)

    (code, status, _), *found = elsewhere(there, [["status", "one"], *READING], links=False)
    assert (code, "; not running" in status) == (0, True)  # the rest has ages
    assert found == here(own, READING)
    assert [code for code, _, _ in found] == [0] * len(READING)
    assert (there / "rows.csv").read_bytes() == (own / "rows.csv").read_bytes()


@pytest.mark.slow
def test_a_job_says_in_a_line_what_it_needs(simulated: Path, tmp_path: Path) -> None:
    from_to = ["--spec", SPEC, "--from", str(simulated), "--to", "results"]
    for code, out, err in elsewhere(tmp_path, [["backfill", *from_to], ["stream", *from_to]]):
        assert (code, out) == (1, "")
        assert err == (
            "error: results: only Linux and macOS have locks of folders, which a job needs; run it there, in WSL, or in"
            " a container\n"
        )
    assert os.listdir(tmp_path) == []


#: A device with a ledger, another one of the same process, and a collector.
LIBRARY = """if True:
    import json, sys
    from tests.elsewhere import hide
    hide(links=False)
    import numpy as np
    from uldp.collector import Collector
    from uldp.mechanisms import Device, FileLedger
    from uldp.schemas import CollectionSpec

    keys = {"collection": "c", "version": 1, "domain": {"size": 4}, "window": {"size": "1h"}}
    keys |= {"mechanism": {"name": "rr", "epsilon": 1.0}, "budget": {"epsilon": 40.0, "every": "1d"}}
    spec = CollectionSpec.parse(keys | {"limits": {"min_reports": 1}})
    noon, collector = 1_767_614_400_000, Collector([spec])
    for seed in (1, 2):  # the second finds what the first has spent
        device = Device(
            spec, hidden={}, ledger=FileLedger("ledger.json", skew=None), randomness=np.random.default_rng(seed)
        )
        assert not collector.add([device.report(value, event_time_ms=noon) for value in [0, 0, 1, 2] * 5])
    try:
        device.report(0, event_time_ms=noon)
    except ValueError as error:
        refused = str(error)
    estimates = [estimate.n for estimate in collector.estimates()]
    json.dump([estimates, refused], sys.stdout)
"""


def test_devices_with_ledgers_and_collectors_run_there(tmp_path: Path) -> None:
    command = [sys.executable, "-c", f"import sys; sys.path.append({str(ROOT)!r})\n{LIBRARY}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    counted, refused = json.loads(done.stdout)
    assert counted == [40]
    assert "budget" in refused
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger.json", "ledger.json.lock"]
