"""``uldp stream --specs`` whose folder changes while the job is killed again and again: each report is exactly once
where it belongs, by an account of the test's own.

Every report has a symbol of its own and no privacy, so that a right count is 1: a 2 is a double count, a 0 is a loss.
"""

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.build import HOUR, MINUTE, START
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.flags import Flag
from uldp.schemas.framing import report_store
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import milliseconds_of
from uldp.transforms.io.local.resume_point import RESUME, ResumePoint
from uldp.transforms.io.local.segments import number_of
from uldp.transforms.io.local.stream import LocalStream

#: Set ULDP_KILLS=20 for the long run; each kill costs about four seconds.
KILLS = int(os.environ.get("ULDP_KILLS", "3"))
REPORTS, SEGMENTS, LAST = 1_500, 80, 20
#: The stream is so many segments ahead of the job at the most, however long the job takes to start.
AHEAD = 6
SPEC = f"""
collection: %s
version: 1
domain: {{size: {REPORTS}}}
mechanism: {{name: identity}}
limits: {{min_reports: 1}}
"""
FIXED = "window: {size: 1h, early_every: 1s, allowed_lateness: 30m}\n"
SLIDING = "window: {size: 1h, period: 15m, allowed_lateness: 15m}\n"
#: By the number of the segment behind which it is written, the content of a file of the folder.
CHANGES = {
    -2: ("steady.yaml", SPEC % "steady" + FIXED),
    -1: ("old.yaml", SPEC % "old" + FIXED),
    10: ("one.yaml", SPEC % "one" + FIXED),
    18: ("steady.yaml", SPEC % "steady" + FIXED + "estimator: [empirical, norm-sub]\n"),
    26: ("two.yaml", SPEC % "two" + SLIDING),
    34: ("steady.yaml", "collection: steady\nversion: 1\nestimator: {"),
    42: ("old.yaml", SPEC % "old" + FIXED + "retired: true\n"),
}
COLLECTIONS = ("steady", "old", "one", "two")
#: The command with looks that are nearer to each other, so that the test takes no hour.
MAIN = (
    "from uldp.pipelines.jobs.spec_watch import SpecWatch; SpecWatch.EVERY, SpecWatch.AT_ONCE = 0.5, 0.2\n"
    "from uldp.pipelines.cli import main; main()"
)


def schedule() -> list[list[Message]]:
    """Segments of reports of six hours to four collections, out of order by up to a minute, some of them twice."""
    rng = np.random.default_rng(5)
    messages = []
    for collection in COLLECTIONS:
        for symbol, each in enumerate(np.sort(rng.integers(START, START + 6 * HOUR, REPORTS)).tolist()):
            data = Report(collection, 1, rng.bytes(16), each, symbol).encode()
            messages.append(Message(data, each + int(rng.integers(MINUTE))))
            if symbol % 10 == 0:
                messages.append(Message(data, messages[-1].publish_time + int(rng.integers(10 * MINUTE))))
    messages.sort(key=lambda message: message.publish_time)
    return [messages[part[0] : part[-1] + 1] for part in np.array_split(np.arange(len(messages)), SEGMENTS)]


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition of the job."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def reached(out: Path) -> int:
    """The number of the segment that the job has come to."""
    point = ResumePoint.read(out / RESUME)
    return 0 if point is None else number_of(point.segment)


def kept(out: Path, collection: str) -> CollectionSpec | None:
    path = out / "specs" / f"{collection}-v1" / "spec.yaml"
    return CollectionSpec.load(path) if path.exists() else None


@pytest.mark.slow
def test_counts_are_exact_while_specs_come_and_go_and_the_job_is_killed(tmp_path: Path) -> None:
    specs, out = tmp_path / "specs", tmp_path / "out"
    specs.mkdir()
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    command = [sys.executable, "-c", MAIN, "stream", "--specs", "specs", "--from", "stream", "--to", "out"]
    command += ["--watermark-delay", "1m"]
    segments = schedule()
    # The kills: each when the job has come to one of these segments.
    targets = sorted(random.Random(KILLS).sample(range(3, SEGMENTS - LAST - AHEAD), KILLS))

    def change(number: int) -> None:
        if number in CHANGES:
            name, content = CHANGES[number]
            (specs / f".{name}").write_text(content, encoding="utf-8")
            (specs / f".{name}").replace(specs / name)

    def until_reached(number: int, process: subprocess.Popen[bytes] | None) -> None:
        until(lambda: reached(out) >= number or (process is not None and process.poll() is not None))

    def publish() -> None:
        for number, segment in enumerate(segments[:-LAST]):
            until_reached(number - AHEAD, None)
            stream.append(segment)
            change(number)
        until(lambda: (old := kept(out, "old")) is not None and old.closes is not None)
        for segment in segments[-LAST:]:
            stream.append(segment)
        stream.close()

    change(-2)
    change(-1)
    publisher = threading.Thread(target=publish, daemon=True)
    publisher.start()
    for target in targets:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
        try:
            until_reached(target, process)
        finally:
            process.kill()
        assert process.wait() == -9  # it was at work: the stream is not closed yet
    last = subprocess.run(command, cwd=tmp_path, check=True, stdout=subprocess.PIPE, text=True).stdout
    publisher.join()
    assert "steady.yaml: refused, the spec before stays in force: line 3:" in last

    opens, closes = dict.fromkeys(COLLECTIONS, 0), dict.fromkeys(COLLECTIONS, 1 << 62)
    for name in COLLECTIONS:
        spec = kept(out, name)
        assert spec is not None
        opens[name] = 0 if spec.opens is None else milliseconds_of(spec.opens)
        closes[name] = closes[name] if spec.closes is None else milliseconds_of(spec.closes)
    assert opens["steady"] == opens["old"] == 0 < START < opens["one"] <= opens["two"]
    assert opens["two"] < closes["old"] < START + 6 * HOUR
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    rejected: Counter[tuple[str, bytes]] = Counter()
    for message in (each for segment in segments for each in segment):
        record = report_store().decode(message.data)[1]
        name, at = record["collection"], message.publish_time
        if at < opens[name]:
            rejected[Reason.UNKNOWN_COLLECTION, message.data] += 1
        elif at >= closes[name]:
            rejected[Reason.RETIRED_VERSION, message.data] += 1
        else:
            counts[name][record["payload"]] += 1

    folder = ResultsFolder(out)
    assert Counter((each.reason, data) for each in folder.rejected() for data, _ in each.each()) == rejected
    panes = newest(folder.statistics())
    for name in COLLECTIONS:
        mine = [pane for pane in panes if pane.collection == name]
        windows = 4 if name == "two" else 1
        expected = np.zeros(REPORTS, dtype=np.int64)
        expected[[*counts[name]]] = 1
        found = np.sum([pane.cells for pane in mine if pane.n], axis=0)
        assert found.tolist() == (windows * expected).tolist()
        assert sum(pane.accounting.duplicate for pane in mine) == windows * (counts[name].total() - len(counts[name]))
        assert all(pane.pane.kind.value != "early" for pane in mine)
    assert {pane.collection for pane in panes if Flag.SPEC_REFUSED in pane.flags} == {"steady"}
    estimates = [each for each in folder.estimates() if each.collection == "steady"]
    newest_window = max(each.window_start for each in estimates)
    assert {each.estimator for each in estimates if each.window_start == newest_window} == {"empirical", "norm-sub"}

    # A backfill by the specs that the results keep counts the same, byte for byte.
    backfill = [sys.executable, "-c", MAIN, "backfill", "--from", "stream", "--to", "whole"]
    for name in COLLECTIONS:
        backfill += ["--spec", f"out/specs/{name}-v1/spec.yaml"]
    subprocess.run(backfill, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    whole = newest(ResultsFolder(tmp_path / "whole").statistics())
    assert {(pane.key, pane.cells.tobytes()) for pane in whole if pane.n} == {
        (pane.key, pane.cells.tobytes()) for pane in panes if pane.n
    }
