"""A closed local stream of two collections, one of them with sliding windows, and the results of both jobs."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import build
from tests.build import HOUR, MINUTE, START
from uldp.pipelines.jobs import local
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.local.stream import LocalStream

FIXED = build.spec(window={"size": "1h", "allowed_lateness": "10m"}, limits={"min_reports": 30})
SLIDING = build.spec(collection="s", window={"size": "1h", "period": "20m", "allowed_lateness": "10m"})
SPECS: list[CollectionSpec] = [FIXED, SLIDING]
SEGMENTS = 12


class Job(NamedTuple):
    """A source, and the results of its job."""

    stream: Path
    out: Path
    kind: str


def messages(segment: int) -> Iterator[Message]:
    """Twenty minutes: reports of both collections, a copy, a report of 3 hours ago, and two that cannot be counted.

    Each segment has another number of reports.
    """
    began = START + segment * 20 * MINUTE
    for number in range(20 + segment):
        key = ("c", 1) if number % 2 else ("s", 1)
        yield build.message(_report(1000 * segment + number, began + number * MINUTE // 4, key))
    yield build.message(_report(1000 * segment, began, ("s", 1)), began + 15 * MINUTE)
    yield build.message(_report(1000 * segment + 500, began - 3 * HOUR, ("c", 1)), began + 15 * MINUTE)
    yield build.message(build.report(1000 * segment + 501, 77, began), began + 15 * MINUTE)
    yield Message(b"no report", began + 15 * MINUTE)


def _report(number: int, time: int, key: tuple[str, int]) -> Report:
    return build.report(number, number % 5, time, key)


def stream_of(path: Path) -> LocalStream:
    """An open stream of all segments."""
    stream = LocalStream.create(path, simulated_clock=True)
    for segment in range(SEGMENTS):
        stream.append(list(messages(segment)))
    return stream


@pytest.fixture(scope="session")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Job]:
    root = tmp_path_factory.mktemp("jobs")
    stream = stream_of(root / "stream")
    stream.close()
    options = local.pipeline_options([])
    local.backfill(SPECS, stream.path, root / "backfill", options)
    local.follow(SPECS, stream.path, root / "stream-out", options)
    return {
        "backfill": Job(stream.path, root / "backfill", "backfill"),
        "stream": Job(stream.path, root / "stream-out", "stream"),
    }


@pytest.fixture(params=["backfill", "stream"])
def job(request: pytest.FixtureRequest, jobs: dict[str, Job], tmp_path: Path) -> Job:
    """A copy that a test may damage."""
    original = jobs[request.param]
    copy = Job(tmp_path / "stream", tmp_path / "out", original.kind)
    shutil.copytree(original.stream, copy.stream)
    shutil.copytree(original.out, copy.out)
    return copy
