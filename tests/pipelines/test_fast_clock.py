"""A stream with a real clock that runs 6,000 times as fast, and a job that is killed: no report is late because of it.

The job takes seconds to start again, and hours pass on the clock meanwhile, as with a job that somebody starts again
the next morning.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from tests.build import HOUR, START, message, report, spec
from tests.pipelines.jobs.test_resuming import facts
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.jobs.settings import JobSettings
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.pane import Accounting
from uldp.transforms.io.local.resume_point import RESUME, ResumePoint
from uldp.transforms.io.local.segments import number_of
from uldp.transforms.io.local.stream import LocalStream

FASTER = 6_000
#: Messages take hours of this clock from their writer to the job: three seconds of this machine.
DELAY = 5 * HOUR
SPEC = spec(window={"size": "6h", "allowed_lateness": "6h"}, limits={"max_clock_skew": "1h", "max_age": "3d"})
#: A run is killed once it has read so many segments behind those that the run before has read.
KILLS, SEGMENTS = 4, 70
#: Seconds between segments: 25 minutes of this clock.
EVERY = 0.25
ROOT = Path(__file__).parents[2]


def clock_from(began: float) -> Callable[[], float]:
    """A clock that every process reads alike; it was at ``START`` when the monotonic one was at ``began``."""
    return lambda: START / 1000 + (time.monotonic() - began) * FASTER


def follow(folder: Path, out: str, began: float) -> None:
    options, clock = jobs.pipeline_options([]), clock_from(began)
    jobs.follow([SPEC], folder / "stream", folder / out, options, JobSettings(watermark_delay_ms=DELAY), clock=clock)


def point_of(out: Path) -> ResumePoint | None:
    return ResumePoint.read(out / RESUME)


def reached(out: Path) -> int:
    """The number of the segment that a job has come to."""
    point = point_of(out)
    return 0 if point is None else number_of(point.segment)


def publish(stream: LocalStream, clock: Callable[[], float], ended: threading.Event) -> tuple[int, int]:
    """Publish reports of now, and sometimes one of the day before; return how many of both."""
    late = 0
    for number in count():
        now = int(clock() * 1000)
        sent = [message(report(2 * number, number % 5, now), now)]
        if number % 10 == 0 and now > START + 31 * HOUR:
            sent.append(message(report(2 * number + 1, 0, now - 30 * HOUR), now))
            late += 1
        stream.append(sent)
        if ended.wait(timeout=EVERY):
            stream.close()
            return number + 1, late
    raise AssertionError


@pytest.mark.nightly
def test_a_job_that_is_killed_on_a_real_clock_finds_no_report_late(tmp_path: Path) -> None:
    began, ended, published = time.monotonic(), threading.Event(), list[tuple[int, int]]()
    stream, clock = LocalStream.create(tmp_path / "stream"), clock_from(began)
    run = (
        f"from pathlib import Path; from {__name__} import follow; follow(Path({str(tmp_path)!r}), 'parts', {began!r})"
    )
    publisher = threading.Thread(target=lambda: published.append(publish(stream, clock, ended)))
    publisher.start()
    points = []
    try:
        for _ in range(KILLS):
            before = reached(tmp_path / "parts")
            job = subprocess.Popen([sys.executable, "-c", run], cwd=ROOT)
            try:
                while reached(tmp_path / "parts") < before + SEGMENTS:
                    with pytest.raises(subprocess.TimeoutExpired):  # it is at work until it is killed
                        job.wait(timeout=0.2)
            finally:
                job.kill()
                job.wait()
            points.append(point_of(tmp_path / "parts"))
    finally:
        ended.set()
        publisher.join()
    assert points[0] is not None
    assert points[-1] is not None
    assert points[0].first < points[-1].first  # the last run does not read all again
    for out in ("parts", "whole"):
        follow(tmp_path, out, began)
    assert facts(tmp_path / "parts") == facts(tmp_path / "whole")
    ((counted, late),) = published
    panes = newest(ResultsFolder(tmp_path / "parts").statistics())
    total = sum((pane.accounting for pane in panes), Accounting())
    assert total == Accounting(received=counted + late, counted=counted, late=late)
    assert late > 0
    assert len(panes) >= KILLS * SEGMENTS * EVERY * FASTER // (6 * 3600)
