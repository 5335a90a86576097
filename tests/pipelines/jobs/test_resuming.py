"""A job of a local stream that is stopped anywhere and started again counts as one that nobody stopped."""

import hashlib
import json
import logging
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build import HOUR, MINUTE, START, message, report, spec
from tests.pipelines.command import Run
from uldp.collector.shared_specs import SharedSpecs
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.jobs.outputs import Claim
from uldp.pipelines.jobs.publishing import Publishing
from uldp.pipelines.jobs.resuming import _digest, resume_points
from uldp.pipelines.jobs.settings import JobSettings
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.errors import DataError
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.internals import LOCAL_EXECUTOR_LOG, RETRIED
from uldp.transforms.io.archive import message_files
from uldp.transforms.io.durable_files import write_file
from uldp.transforms.io.endpoints import parse_endpoint
from uldp.transforms.io.local import events
from uldp.transforms.io.local.journal import JOURNAL, Journal, JournalEnd
from uldp.transforms.io.local.resume import Announced, ResumePoints
from uldp.transforms.io.local.resume_point import RESUME, ResumePoint
from uldp.transforms.io.local.segments import SegmentHeader, read_header
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.local.waiting import Waiting
from uldp.transforms.io.message_files import read_messages

#: Set ULDP_RESTARTS=50 for the long run; each stream costs some five seconds.
STREAMS = int(os.environ.get("ULDP_RESTARTS", "2"))
DAY = 24 * HOUR
LIMITS = {"max_clock_skew": "1h", "max_age": "3d"}
FIXED = spec(window={"size": "12h", "allowed_lateness": "3h"}, limits=LIMITS)
SLIDING = spec(
    collection="s", window={"size": "1d", "period": "8h", "offset": "23m", "allowed_lateness": "1h"}, limits=LIMITS
)
FEW = spec(collection="f", window={"size": "2d"}, limits=LIMITS | {"min_reports": 20})
SPECS = (FIXED, SLIDING, FEW)


def follow(stream: LocalStream, out: Path, specs: Sequence[CollectionSpec] = SPECS, **settings: Any) -> list[str]:
    """The lines that the job says."""
    said: list[str] = []
    options = jobs.pipeline_options([])
    jobs.follow(specs, stream.path, out, options, JobSettings(say=said.append, **settings))
    return said


def stopped_at(
    stream: LocalStream, out: Path, segment: Path, specs: Sequence[CollectionSpec] = SPECS, **settings: Any
) -> None:
    """Run a job that has read the segments before one, and then fails."""

    def header(path: Path) -> SegmentHeader:
        if path == segment:
            raise OSError("the job stops here")
        return read_header(path)

    with mock.patch.object(events, "read_header", header), pytest.raises(OSError, match="the job stops here"):
        follow(stream, out, specs, **settings)


def sent(rng: np.random.Generator, n: int, days: float) -> list[Message]:
    """Reports of some days: on time, late by hours or days, ahead, twice, impossible, and of nobody."""
    messages = []
    for number in range(n):
        key = [each.key for each in SPECS][number % 3]
        published = START + int(rng.integers(int(days * DAY)))
        delay = [0, 0, 10 * MINUTE, 4 * HOUR, 20 * HOUR, 50 * HOUR, -30 * MINUTE][rng.integers(7)]
        kind = rng.integers(20)
        at = published - delay + (5 * HOUR if kind == 1 else 0)
        each = report(number, 99 if kind == 2 else int(rng.integers(5)), at, ("x", 1) if kind == 3 else key)
        messages.append(message(each, published))
        if rng.random() < 0.2:
            messages.append(message(each, published + int(rng.integers(HOUR, 30 * HOUR))))
    return sorted(messages, key=lambda each: each.publish_time)


def begun(folder: str | Path, messages: Sequence[Message], segments: int) -> LocalStream:
    stream = LocalStream.create(Path(folder, "stream"), simulated_clock=True)
    for part in np.array_split(np.arange(len(messages)), segments):
        stream.append([messages[index] for index in part.tolist()])
    stream.close()
    return stream


def facts(out: Path) -> tuple[Any, ...]:
    """All results but the revisions of panes, and how records share files."""
    panes = {
        pane.key: (pane.pane.kind, pane.accounting, pane.flags, pane.signals, pane.cells.tolist())
        for pane in newest(ResultsFolder(out, private=out).statistics())
    }
    estimates = {
        (each.key, each.estimator): (each.accounting, str(each.tables))
        for each in newest(ResultsFolder(out).estimates())
    }
    files = message_files(out / "late") if (out / "late").exists() else []
    late = Counter((each.data, each.publish_time) for file in files for each in read_messages(file))
    rejected = Counter((*each, record.reason) for record in ResultsFolder(out).rejected() for each in record.each())
    return panes, estimates, late, rejected


def files(out: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.avro") if not path.name.startswith(".")
    }


@pytest.mark.slow
@settings(max_examples=STREAMS, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(20, 80),
    st.integers(5, 24),
    st.floats(3, 7),
    st.lists(st.floats(0.3, 1), min_size=1, max_size=2),
)
def test_whatever_was_sent_and_wherever_it_stops(
    seed: int, n: int, segments: int, days: float, stops: list[float]
) -> None:
    messages = sent(np.random.default_rng(seed), n, days)
    with tempfile.TemporaryDirectory() as folder:
        stream = begun(folder, messages, min(segments, n))
        whole, parts = Path(folder, "whole"), Path(folder, "parts")
        follow(stream, whole)
        paths = stream.segments()
        for stop in sorted(stops):
            stopped_at(stream, parts, paths[int(stop * (len(paths) - 1))])
        follow(stream, parts)
        assert facts(parts) == facts(whole)
        for pane in newest(ResultsFolder(parts, private=parts).statistics()):
            of = pane.accounting
            assert of.received == of.counted + of.duplicate + of.late + of.rejected


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> tuple[LocalStream, Path]:
    """A stream of six days that is read up to two hours before its end, and the results until then."""
    folder = tmp_path_factory.mktemp("week")
    rng = np.random.default_rng(11)
    messages = [
        message(report(number, int(rng.integers(5)), START + number * HOUR), START + number * HOUR)
        for number in range(150)
    ]
    messages.insert(5, Message(b"nobody's", START + 4 * HOUR))
    messages.insert(140, Message(b"nobody's either", messages[139].publish_time))
    stream = begun(folder, messages, 76)
    stopped_at(stream, folder / "out", stream.segments()[-2], [FIXED])
    return stream, folder / "out"


def copied(out: Path, to: Path) -> Path:
    for path in out.rglob("*"):
        if path.is_file():
            write_file(str(to / path.relative_to(out)), path.read_bytes())
    return to


def test_a_restart_reads_what_can_change_alone_and_writes_the_same_bytes(
    week: tuple[LocalStream, Path], tmp_path: Path
) -> None:
    stream, before = week
    out = copied(before, tmp_path / "out")
    point = ResumePoint.read(out / RESUME)
    assert point is not None
    (served,) = SharedSpecs.of([FIXED]).served.values()
    # Half a day and three hours until it closes, a day to amend it; ids of as long, and an hour of skew twice.
    assert served.reach == (15 + 24 + 15 + 2) * HOUR
    first, segment = int(point.first[:12]), int(point.segment[:12])
    # A segment is of two hours, and an event of half a day.
    assert segment - (served.reach / HOUR + 12) / 2 - 1 <= first < segment - served.reach / HOUR / 2

    publishing = Publishing(parse_endpoint(f"duckdb:{tmp_path / 'rows.duckdb'}"))
    with mock.patch.object(events, "read_header", wraps=read_header) as opened:
        said = follow(stream, out, [FIXED], publishing=publishing)
    assert [call.args[0].name for call in opened.call_args_list] == [
        path.name for path in stream.segments() if path.name >= point.first
    ]
    assert said[0] == f"resuming at {point.segment} of {stream.path}; it is read again from {point.first} on"
    follow(stream, tmp_path / "whole", [FIXED])
    assert files(out) == files(tmp_path / "whole")
    assert {path.split("/")[0] for path in files(out)} == {"counts", "estimates", "rejected"}
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        query = "SELECT DISTINCT epoch_ms(window_start), received FROM estimate_panes"
        published = set(connection.execute(query).fetchall())
    # Of the windows of which it reads a part it publishes what an earlier run has written.
    estimates = ResultsFolder(out).estimates()
    every, last = (
        {(each.window_start, each.accounting.received) for each in some} for some in (estimates, newest(estimates))
    )
    assert last <= published <= every


@pytest.mark.parametrize("other", ["specs", "delay", "private", "nothing"])
def test_another_job_reads_from_the_beginning(week: tuple[LocalStream, Path], other: str) -> None:
    stream, out = week
    limits = LIMITS | ({"min_reports": 3} if other == "specs" else {})
    each = spec(window={"size": "12h", "allowed_lateness": "3h"}, limits=limits)
    claim = Claim(str(out.absolute()), "elsewhere" if other == "private" else str(out.absolute()), 1)
    said: list[str] = []
    points = resume_points(SharedSpecs.of([each]), stream, claim, MINUTE if other == "delay" else 0, said.append)
    begins = f"{out / RESUME} is of a job with other specs or options: {stream.path} is read from its beginning"
    assert (points.start is None, begins in said) == ((other != "nothing"),) * 2


@pytest.mark.parametrize(
    "change",
    [
        {"first": "../../etc/x.avro"},
        {"first": "000000000071.avro"},
        {"watermark": "0"},
        {"watermark": 1e300},
        {"more": 1},
        {"last": None},
    ],
)
def test_a_damaged_point_is_refused_with_the_remedy(
    week: tuple[LocalStream, Path], tmp_path: Path, change: dict[str, object]
) -> None:
    stream, before = week
    out = copied(before, tmp_path / "out")
    fields = json.loads((out / RESUME).read_text())
    (out / RESUME).write_text(json.dumps(fields | {"segment": "000000000070.avro"} | change))
    with pytest.raises(DataError, match=r"resume\.json: not a resume point; remove the file"):
        follow(stream, out, [FIXED])


@pytest.mark.parametrize(("ahead", "refused"), [(3 * DAY, True), (-MINUTE, False)])
def test_a_point_that_is_ahead_of_a_real_clock_is_refused(tmp_path: Path, ahead: int, refused: bool) -> None:
    stream = LocalStream.create(tmp_path / "stream")
    names = [stream.append([Message(b"", START)]).name]
    journal = JournalEnd(size=0, digest=hashlib.sha256().hexdigest())
    claim = Claim(str(tmp_path), str(tmp_path), 1)
    marks = {"first_watermark": None, "watermark": stream.now() + ahead}
    job = _digest(SharedSpecs.of([FIXED]), claim, 0)
    point = ResumePoint(job=job, first=names[0], segment=names[0], last=names[0], journal=journal, **marks)
    (tmp_path / RESUME).write_text(point.model_dump_json())
    remedy = r"resume\.json: the watermark is .*, ahead of the clock by .*; if the clock is right, choose another --to"
    with pytest.raises(ResultsError, match=remedy) if refused else nullcontext():
        assert resume_points(SharedSpecs.of([FIXED]), stream, claim, 0, lambda _: None).start == point


def test_the_last_segment_of_a_point_is_missing(week: tuple[LocalStream, Path], tmp_path: Path) -> None:
    stream, before = week
    out = copied(before, tmp_path / "out")
    point = ResumePoint.read(out / RESUME)
    assert point is not None
    for path in copied(stream.path, tmp_path / "stream").glob("*.avro"):
        if path.name >= point.last:
            path.unlink()
    with pytest.raises(ResultsError, match=rf"{point.last}: missing, and the job has read it, as .*resume\.json says"):
        follow(LocalStream.open(tmp_path / "stream"), out, [FIXED])


def test_segments_that_the_job_needs_no_more_are_removed_and_counted(
    week: tuple[LocalStream, Path], uldp: Run, tmp_path: Path
) -> None:
    source, out = copied(week[0].path, tmp_path / "stream"), copied(week[1], tmp_path / "out")
    point = ResumePoint.read(out / RESUME)
    assert point is not None
    before = LocalStream.open(source).segments()
    gone = [path for path in before if path.name < point.first]
    assert gone
    nbytes = sum(path.stat().st_size for path in gone)
    removed = f"{len(gone)} segments that the job needs no more; {nbytes:,} bytes"
    for option, what, left in (("--dry-run", "would remove", before), ("--keep=30d", "removed", before[len(gone) :])):
        code, said, err = uldp("prune", out, "--stream", source, option)
        assert (code, err) == (0, "")
        assert said.splitlines()[1] == f"{source}: {what} {removed}"
        assert LocalStream.open(source).segments() == left
    assert follow(LocalStream.open(source), out, [FIXED])[0].startswith(f"resuming at {point.segment} of {source}")
    follow(week[0], copied(week[1], tmp_path / "whole"), [FIXED])
    assert files(out) == files(tmp_path / "whole")
    assert removed not in uldp("prune", out, "--stream", source)[1]


def test_no_segment_is_removed_of_another_stream_or_before_the_first_point(
    week: tuple[LocalStream, Path], uldp: Run, tmp_path: Path
) -> None:
    source, out = copied(week[0].path, tmp_path / "stream"), copied(week[1], tmp_path / "out")
    other = begun(tmp_path / "other", [message(report(0, 0))], 1)
    code, _, err = uldp("prune", out, "--stream", other.path)
    assert code == 1
    assert "is another stream; give the stream of this job" in err
    (out / RESUME).unlink()
    before = LocalStream.open(source).segments()
    assert uldp("prune", out, "--stream", source)[0] == 0
    assert LocalStream.open(source).segments() == before
    (out / RESUME).write_text("{", encoding="utf-8")
    code, _, err = uldp("prune", out, "--stream", source)
    assert code == 1
    assert "not a resume point" in err
    assert LocalStream.open(source).segments() == before


def test_no_point_is_behind_a_bundle_that_fails(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A window that cannot be written stays before the point, although the runner may go on with the next event."""
    stream = begun(tmp_path, [message(report(hour, 0, START + hour * HOUR)) for hour in range(0, 30, 3)], 10)
    fails = START + 12 * HOUR
    caplog.set_level(logging.ERROR, logger="apache_beam")  # a command in this process may have silenced it

    def broken(path: str, content: bytes, *, private: bool = False) -> None:
        if "/counts/" in path and "20260101T120000Z" in path:
            raise OSError("the disk is away")
        write_file(path, content, private=private)

    with (
        mock.patch("uldp.transforms.io.durable_files.write_file", broken),
        pytest.raises(Exception, match="the disk is away"),
    ):
        follow(stream, tmp_path / "out", [FIXED])
    of_runner = [each.msg for each in caplog.records if (each.name, each.levelname) == (LOCAL_EXECUTOR_LOG, "ERROR")]
    assert [text.startswith(RETRIED) for text in of_runner[-2:]] == [True, False]  # all that ``_Failures`` can see
    point = ResumePoint.read(tmp_path / "out" / RESUME)
    assert point is not None
    assert point.watermark is None or point.watermark < fails + 12 * HOUR
    follow(stream, tmp_path / "out", [FIXED])
    follow(stream, tmp_path / "whole", [FIXED])
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_rejected_and_late_reports_are_written_once_although_segments_came_one_by_one(tmp_path: Path) -> None:
    days = [Message(b"nobody's", START + minute * MINUTE) for minute in range(6)]  # equal, but not copies
    days += [message(report(minute, 0), START + 2 * DAY + minute * MINUTE) for minute in range(6)]
    stream = begun(tmp_path, days, 12)
    with mock.patch.object(Waiting, "MAX_SEGMENTS", 1):
        stopped_at(stream, tmp_path / "out", stream.segments()[10], [FIXED])
    assert len(files(tmp_path / "out")) == 6 + 4  # one for each segment
    follow(stream, tmp_path / "out", [FIXED])
    _, _, late, rejected = facts(tmp_path / "out")
    assert (late.total(), rejected.total()) == (6, 6)


# Which point an event has.


@contextmanager
def writing(path: Path, reach: int, start: ResumePoint | None = None) -> Iterator[ResumePoints]:
    with Journal(path.parent / JOURNAL) as journal, ResumePoints(path, "j", reach, journal, start) as points:
        yield points


def announced(number: int, watermark: int | None, latest: int) -> Announced:
    return Announced(f"{number:012d}.avro", f"{number:012d}.avro", watermark, latest)


def watermarks() -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, 500), min_size=1, max_size=40).map(lambda steps: np.cumsum(steps).tolist())


@settings(max_examples=25)
@given(watermarks(), st.integers(0, 300), st.integers(1, 1000))
def test_no_message_before_the_first_segment_is_within_reach(marks: list[int], ahead: int, reach: int) -> None:
    """``marks`` are watermarks behind each event, and messages are published up to ``ahead`` later."""
    with tempfile.TemporaryDirectory() as folder, writing(Path(folder, "p"), reach) as points:
        latest: list[int] = []
        for number, (before, after) in enumerate(zip([None, *marks], marks, strict=False)):
            latest.append(max([after + ahead, *latest[-1:]]))
            points.begin(announced(number, before, latest[-1]), 10**9)
            point = ResumePoint.read(Path(folder, "p"))
            assert point is not None
            first = int(point.first[:12])
            assert point.segment == point.last == f"{number:012d}.avro"
            assert point.first_watermark == (None if first == 0 else marks[first - 1])
            assert first == 0 or latest[first - 1] < (before or 0) - reach


def test_a_point_from_before_holds_until_the_job_is_there_again(tmp_path: Path) -> None:
    path, events = tmp_path / RESUME, [announced(number, 10 * number, 10 * number + 9) for number in range(4)]
    with writing(path, 5) as points:
        for event in events:
            points.begin(event, 10**9)
    start = ResumePoint.read(path)
    path.unlink()
    with writing(path, 5, start) as points:
        points.begin(events[1], 10**9)
        points.begin(events[2], 10**9)
        assert not path.exists()
        points.begin(events[3], 10**9)
        assert path.exists()


def test_a_message_from_the_future_is_published_now(tmp_path: Path) -> None:
    with writing(tmp_path / RESUME, 5) as points:
        for number, present in enumerate([10, 20, 30, 40]):
            points.begin(announced(number, present, 10**9), present)
    point = ResumePoint.read(tmp_path / RESUME)
    assert point is not None
    assert point.first == "000000000002.avro"  # those before were published by 30


@pytest.mark.parametrize("level", [logging.INFO, logging.CRITICAL])
@pytest.mark.parametrize(("text", "goes_on"), [(f"{RETRIED} of it", True), ("Giving up after 3 attempts.", False)])
def test_errors_of_the_runner_end_the_points(
    text: str, goes_on: bool, level: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where the command line shows none of Beam's log, without --verbose."""
    caplog.set_level(level, logger="apache_beam")
    runner = logging.getLogger(LOCAL_EXECUTOR_LOG)
    with writing(tmp_path / RESUME, 5) as points:
        runner.error(text)
        points.begin(announced(0, None, 9), 10**9)
    assert (tmp_path / RESUME).exists() is goes_on
    assert len(caplog.records) == (level == logging.INFO)
    assert (runner.level, runner.filters) == (logging.NOTSET, [])
