"""Servers of a job on one machine, which no other machine reaches, and the pool of Python workers."""

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from apache_beam.portability.api.org.apache.beam.model.fn_execution.v1.beam_fn_api_pb2 import (
    StartWorkerRequest,
    StopWorkerRequest,
)
from apache_beam.portability.api.org.apache.beam.model.pipeline.v1.endpoints_pb2 import ApiServiceDescriptor

from tests.listening import Listener, listeners_below
from uldp.pipelines.jobs.loopback import loopback_servers
from uldp.pipelines.jobs.pool import Pool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's tables of sockets")

EXAMPLE = Path(__file__).parents[3] / "examples" / "manhattan"
TWO_WORKERS = ("--direct_num_workers=2", "--direct_running_mode=multi_processing")


def uldp(*arguments: object) -> list[str]:
    return [str(Path(sys.executable).with_name("uldp")), *map(str, arguments)]


def seen_while(command: Sequence[str]) -> set[Listener]:
    """Run a command to its end, and return the ports that it and its processes have opened."""
    seen: set[Listener] = set()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while still_runs(process):
            seen |= listeners_below(process.pid)
    assert process.returncode == 0
    return seen


def still_runs(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process has not ended, after a while that leaves it the processor."""
    try:
        process.wait(timeout=0.1)
    except subprocess.TimeoutExpired:
        return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "options"), [pytest.param("backfill", TWO_WORKERS, marks=pytest.mark.nightly), ("stream", ())]
)
def test_a_job_on_one_machine_listens_to_this_machine_alone(
    command: str, options: Sequence[str], warm: Path, tmp_path: Path
) -> None:
    spec = EXAMPLE / "spec.yaml"
    truth = ["--truth", str(EXAMPLE / "truth.csv"), "--users", "100"]
    simulate: list[str | Path] = [warm / "uldp", "simulate", spec, *truth, "--to", tmp_path / "stream"]
    subprocess.run(simulate, check=True, capture_output=True)
    job = uldp(command, "--spec", spec, "--from", tmp_path / "stream", "--to", tmp_path / "out", *options)
    seen = seen_while(job)
    assert bool(seen) == (command == "backfill")  # the events of a stream come through a socket of the file system
    assert {listener for listener in seen if not listener.is_loopback} == set()


def test_the_worker_pool_listens_to_this_machine_alone() -> None:
    pool = [sys.executable, "-m", "uldp.pipelines.jobs.pool", "--service_port=0"]
    with subprocess.Popen(pool, stderr=subprocess.DEVNULL) as process:
        try:
            while not (seen := listeners_below(process.pid)):
                assert still_runs(process)
        finally:
            process.terminate()
    assert all(listener.is_loopback for listener in seen)


def test_servers_of_others_are_left_alone_after_a_failure() -> None:
    make = grpc.server
    with pytest.raises(ValueError, match="failed"), loopback_servers():
        raise ValueError("failed")
    assert grpc.server is make


def request(port: int = 9) -> StartWorkerRequest:
    return StartWorkerRequest(worker_id="1-1", control_endpoint=ApiServiceDescriptor(url=f"127.0.0.1:{port}"))


def test_a_worker_begins_by_the_python_of_the_pool_where_no_other_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    runner = grpc.server(ThreadPoolExecutor(1))  # a worker begins when it reaches its runner
    port = runner.add_insecure_port("127.0.0.1:0")
    runner.start()
    pool = Pool(use_process=True)
    try:
        assert pool.StartWorker(request(port), None).error == ""
    finally:
        pool.StopWorker(StopWorkerRequest(worker_id="1-1"), None)
        runner.stop(grace=None)


@pytest.mark.parametrize(
    ("program", "why"),
    [("#!/bin/sh\nexit 3\n", "worker 1-1 ended with exit code 3 before it began"), (None, "No such file or directory")],
)
def test_a_job_hears_of_a_worker_that_does_not_begin(
    program: str | None, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if program is not None:
        (tmp_path / "python").write_text(program)
        (tmp_path / "python").chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    answer = Pool(use_process=True).StartWorker(request(), None)
    assert why in answer.error
    assert why in capsys.readouterr().err
