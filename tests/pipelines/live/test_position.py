"""What a running job shows of itself: metrics, to this machine alone, and a file that says how far it is."""

import http.client
import json
import re
import signal
import subprocess
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from uldp.pipelines.jobs.outputs import locked
from uldp.pipelines.live.position import POSITION, Position, PositionFile
from uldp.pipelines.live.served import is_running

pytest.importorskip("prometheus_client")
from tests.build import START
from tests.listening import listeners_below
from tests.pipelines.command import SPEC, TRUTH, ULDP, Run
from tests.pipelines.serve.serving import Answer, Serving
from uldp.pipelines.live import monitor
from uldp.pipelines.live.monitor import STANDSTILL_MS, application
from uldp.pipelines.live.served import Served


def get(port: int, path: str) -> tuple[int, str]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def health(out: Path, silent_ms: int, monkeypatch: pytest.MonkeyPatch) -> Answer:
    monkeypatch.setattr(monitor, "now_ms", lambda: START)  # however long a server takes to answer
    position = Position(START, 0, 1, simulated=False, watermark=None, segments=0, messages=0, ahead=0, asked=START)
    late = replace(position, asked=START - silent_ms)
    with Serving(app=application(Served.of("results", out), lambda: late)) as server:
        return server.get("/healthz")


def test_a_runner_that_asks_for_nothing_stands_still(backfilled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert health(backfilled, STANDSTILL_MS, monkeypatch).json()["status"] == "ok"
    answer = health(backfilled, STANDSTILL_MS + 1000, monkeypatch)
    assert (answer.status, answer.json()) == (503, {"status": "stands still", "silent_seconds": 601})


def test_only_a_job_here_has_a_port(uldp: Run, tmp_path: Path) -> None:
    code, _, err = uldp(
        *("stream", "--spec", SPEC, "--from", "kafka:localhost:9/t", "--to", tmp_path / "r", "--runner=FlinkRunner"),
        *("--metrics-port", "0"),
    )
    assert (code, "--metrics-port shows a job without --runner" in err) == (2, True)


@pytest.mark.slow
def test_a_running_job_shows_its_metrics(uldp: Run, tmp_path: Path) -> None:
    stream = tmp_path / "stream"
    uldp("simulate", SPEC, "--truth", TRUTH, "--users", "500", "--to", stream, "--malformed", "0.1")
    (stream / "closed").unlink()
    arguments = ["--spec", SPEC, "--from", stream, "--to", tmp_path / "results", "--metrics-port", "0"]
    command = [str(ULDP), "stream", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = next(line for line in process.stdout if line.startswith("metrics at"))
        port = int(re.findall(r"http://127\.0\.0\.1:(\d+)/metrics\n", line)[0])
        assert all(each.is_loopback for each in listeners_below(process.pid))
        ends = time.monotonic() + 120
        while "uldp_windows_total" not in (text := get(port, "/metrics")[1]):
            assert time.monotonic() < ends
            time.sleep(0.1)
        status, said = get(port, "/healthz")
        written = Position.read(tmp_path / "results")
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
    assert 'uldp_job_running{results="results"} 1.0' in text
    assert "uldp_watermark_timestamp_seconds" in text
    assert "uldp_watermark_lag_seconds" not in text  # the stream's clock is simulated
    assert written is not None
    assert (written.process, written.simulated) == (process.pid, True)
    assert Position.read(tmp_path / "results") is None
    assert (status, json.loads(said)["status"]) == (200, "ok")


HERE = Position(2_000, 1_000, 7, simulated=False, watermark=1_500, segments=3, messages=40, ahead=2, asked=1_900)


def wait_for(path: Path) -> None:
    ends = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_a_position_is_there_while_the_job_is(tmp_path: Path) -> None:
    with PositionFile(tmp_path, lambda: HERE):
        wait_for(tmp_path / POSITION)
        assert Position.read(tmp_path) == HERE
    assert list(tmp_path.iterdir()) == []


def test_a_position_is_written_again(tmp_path: Path) -> None:
    positions = iter(replace(HERE, at=at) for at in range(10**9))
    with PositionFile(tmp_path, lambda: next(positions), every=0.001):
        wait_for(tmp_path / POSITION)
        first = Position.read(tmp_path)
        assert first is not None
        ends = time.monotonic() + 60
        while (now := Position.read(tmp_path)) is None or now.at <= first.at:
            assert time.monotonic() < ends


def test_a_folder_that_is_gone_disturbs_no_job(tmp_path: Path) -> None:
    with PositionFile(tmp_path / "gone", lambda: HERE):
        pass


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"at": "x"}', "x" * (2 << 20)])
def test_what_is_no_position_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / POSITION).write_text(text)
    assert Position.read(tmp_path) is None


def test_the_lag_is_that_of_a_real_clock() -> None:
    assert HERE.lag(now=9_500) == 8_000
    assert HERE.lag(now=1_000) == 0
    assert replace(HERE, watermark=None).lag(9_500) is None
    assert replace(HERE, simulated=True).lag(9_500) is None


def test_a_job_runs_while_it_holds_the_lock(tmp_path: Path) -> None:
    assert not is_running(tmp_path)
    with locked(tmp_path, "--to"):
        assert is_running(tmp_path)
        assert is_running(tmp_path)
    assert not is_running(tmp_path)
