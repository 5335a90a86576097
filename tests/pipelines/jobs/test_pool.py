"""The pool of Python workers: by which Python it starts them, and what the job hears if one does not begin."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from apache_beam.portability.api.org.apache.beam.model.fn_execution.v1.beam_fn_api_pb2 import (
    StartWorkerRequest,
    StopWorkerRequest,
)
from apache_beam.portability.api.org.apache.beam.model.pipeline.v1.endpoints_pb2 import ApiServiceDescriptor

from uldp.pipelines.jobs.pool import Pool


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
