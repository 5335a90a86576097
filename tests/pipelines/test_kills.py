"""``uldp stream`` killed with SIGKILL in the middle, again and again: final counts are exact, also if it resumes.

Every report has a symbol of its own and no privacy, so that a right count is 1: a 2 is a double count, a 0 is a loss.
Then many collections, whose panes share files: a job that breaks off and goes on counts each report once.
"""

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from tests import build
from tests.build import HOUR, MINUTE, START
from uldp.pipelines.cli import cli
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.local.resume_point import RESUME, ResumePoint
from uldp.transforms.io.local.stream import LocalStream

#: Set ULDP_KILLS=20 for the long run; each kill costs about four seconds.
KILLS = int(os.environ.get("ULDP_KILLS", "3"))
REPORTS, SEGMENTS = 6_000, 60
SPEC = f"""
collection: one-each
version: 1
domain: {{size: {REPORTS}}}
mechanism: {{name: identity}}
window: {{size: %s, early_every: 1s, allowed_lateness: 30m}}
limits: {{min_reports: 1}}
"""


def schedule(hours: int) -> list[list[Message]]:
    """Segments of reports from some hours, out of order by up to a minute, each tenth of them twice."""
    rng = np.random.default_rng(3)
    times = np.sort(rng.integers(START, START + hours * HOUR, REPORTS))
    messages = []
    for symbol, time in enumerate(times.tolist()):
        data = Report("one-each", 1, rng.bytes(16), time, symbol).encode()
        messages.append(Message(data, time + int(rng.integers(60_000))))
        if symbol % 10 == 0:
            messages.append(Message(data, messages[-1].publish_time + int(rng.integers(600_000))))
        if symbol % 100 == 0:
            messages.append(Message(b"nobody's %d" % symbol, messages[-1].publish_time))
    messages.sort(key=lambda message: message.publish_time)
    return [messages[part[0] : part[-1] + 1] for part in np.array_split(np.arange(len(messages)), SEGMENTS)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hours", "window"), [(3, "1h, offset: 20m"), pytest.param(120, "12h", marks=pytest.mark.nightly)]
)
def test_final_counts_are_exact_whatever_is_killed_when(hours: int, window: str, tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC % window, encoding="utf-8")
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    command = [sys.executable, "-c", "from uldp.pipelines.cli import main; main()", "stream", "--spec", "spec.yaml"]
    command += ["--from", "stream", "--to", "out", "--watermark-delay", "1m"]
    randomness = random.Random(KILLS)
    killed = threading.Event()

    def publish() -> None:
        """Publish live: a segment each tenth of a second, and the last ones once all kills are done."""
        segments = schedule(hours)
        for segment in segments[:-5]:
            stream.append(segment)
            killed.wait(timeout=0.1)
        killed.wait()
        for segment in segments[-5:]:
            stream.append(segment)
        stream.close()

    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        for _ in range(KILLS):
            process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
            try:
                process.wait(timeout=randomness.uniform(1.0, 6.0))
            except subprocess.TimeoutExpired:
                process.kill()
            assert process.wait() == -9  # it was at work: the stream is not closed yet
    finally:
        killed.set()
        publisher.join()
    subprocess.run(command, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)

    panes = newest(ResultsFolder(tmp_path / "out").statistics())
    assert np.sum([pane.cells for pane in panes if pane.n], axis=0).tolist() == [1] * REPORTS
    copies = REPORTS // 10
    total = sum((pane.accounting for pane in panes), Accounting())
    assert total == Accounting(received=REPORTS + copies, counted=REPORTS, duplicate=copies)
    assert all(pane.pane.kind.value != "early" for pane in panes)
    rejected = [data for record in ResultsFolder(tmp_path / "out").rejected() for data, _ in record.each()]
    assert sorted(rejected) == sorted(b"nobody's %d" % symbol for symbol in range(0, REPORTS, 100))
    point = ResumePoint.read(tmp_path / "out" / RESUME)
    assert point is not None
    assert (point.first > "000000000000.avro") is (hours == 120)


COLLECTIONS, PARTS, BREAKS_OFF = 36, 18, 10
SPECS = [
    build.spec(
        collection=f"c-{number}", domain={"size": 2}, mechanism={"name": "rr", "epsilon": 1.0}, window={"size": "1h"}
    )
    for number in range(COLLECTIONS)
]


def publish(stream: LocalStream, segment: int) -> None:
    """Append ten minutes: a report of each collection."""
    at = START + segment * 10 * MINUTE
    messages = []
    for number, spec in enumerate(SPECS):
        report = build.report(segment * COLLECTIONS + number, number % 2, at, spec.key)
        messages.append(build.message(report, at))
    stream.append(messages)


def follow(stream: LocalStream, out: Path, specs: list[CollectionSpec] = SPECS) -> None:
    options = jobs.pipeline_options([])
    jobs.follow(specs, stream.path, out, options)


def counted(out: Path) -> list[tuple[object, ...]]:
    """What the newest panes and estimates say, whatever their revision."""
    folder = ResultsFolder(out, private=out)
    panes = [
        (each.key, each.pane.kind, each.accounting, each.flags, each.cells.tolist())
        for each in newest(folder.statistics())
    ]
    estimates = [(each.key, each.pane.kind, each.flags, repr(each.tables)) for each in newest(folder.estimates())]
    return [*panes, *estimates]


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> LocalStream:
    made = LocalStream.create(tmp_path_factory.mktemp("many") / "stream", simulated_clock=True)
    for segment in range(PARTS):
        publish(made, segment)
    made.close()
    return made


def test_a_job_that_breaks_off_and_goes_on_has_the_panes_of_one_that_does_not(
    stream: LocalStream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    follow(stream, whole)
    expected = counted(whole)
    assert {each.window_start for each in ResultsFolder(whole).panes()} == {START + hour * HOUR for hour in range(3)}
    assert [path.name.partition(".")[0] for path in whole.glob("counts/*.avro")] == ["all"] * 3

    segment = stream.path / f"{BREAKS_OFF:012d}.avro"
    content = segment.read_bytes()
    segment.write_bytes(b"")
    with pytest.raises(Exception, match=segment.name):
        follow(stream, broken)

    segment.write_bytes(content)
    follow(stream, broken)
    assert counted(broken) == expected

    for command in (["audit", str(stream.path), str(broken)], ["prune", str(broken)]):
        cli.main(command, standalone_mode=False)
    assert counted(broken) == expected
    assert len(ResultsFolder(broken).panes()) == 3 * COLLECTIONS
    cli.main(["prune", str(whole)], standalone_mode=False)
    printed = []
    for out in (whole, broken):
        capsys.readouterr()
        cli.main(["show", str(out), "--collection", "c-7"], standalone_mode=False)
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
