"""Whichever segment is lost, and whenever: once it is given up, received + missing is what was written."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest import mock

import pytest

from tests.build import HOUR, MINUTE, START, message, report, spec
from tests.pipelines.command import Run
from tests.pipelines.jobs.test_resuming import FIXED, follow, stopped_at
from tests.pipelines.jobs.test_resuming import begun as begun_with
from uldp.pipelines.audit.audit import audit
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.pane import Accounting
from uldp.schemas.records import missing_messages
from uldp.transforms.io.files import FilesEndpoint
from uldp.transforms.io.local import events
from uldp.transforms.io.local.journal import JOURNAL, given_up_taken
from uldp.transforms.io.local.resume_point import RESUME, ResumePoint
from uldp.transforms.io.local.segments import SegmentHeader, name_of, number_of, read_header
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import StreamError

SEGMENTS = 6
WINDOW = {"size": "1h", "early_every": "1s", "allowed_lateness": "0s"}
SPECS = [spec(window=WINDOW), spec(collection="s", window={"size": "2h", "period": "1h", "allowed_lateness": "0s"})]
#: How many messages each segment has: 3, 4, ...
SIZES = [3 + segment for segment in range(SEGMENTS)]
WRITTEN = sum(SIZES)
#: A job that is stopped has read the segments before this one.
STOPS_AT = 3
LOST = [*((segment,) for segment in range(SEGMENTS)), *((one, one + 1) for one in range(SEGMENTS - 1)), (0, 5), (1, 4)]


def begun(path: Path) -> LocalStream:
    """A closed stream of a segment an hour, with as many reports as ``SIZES`` says."""
    stream = LocalStream.create(path / "stream", simulated_clock=True)
    for segment, size in enumerate(SIZES):
        times = [START + segment * HOUR + number * MINUTE for number in range(size)]
        keys = [SPECS[number % 2].key for number in range(size)]
        stream.append([message(report(time, 0, time, key), time) for time, key in zip(times, keys, strict=True)])
    stream.close()
    return stream


def lose(stream: LocalStream, lost: Sequence[int]) -> None:
    for segment in lost:
        (stream.path / name_of(segment)).unlink()


def accounts(out: Path) -> dict[tuple[str, int], Accounting]:
    """By collection and hour of the start, what each window accounts for."""
    panes = newest(ResultsFolder(out, private=out).statistics())
    for pane in panes:
        assert ("missing_reports" in pane.flags) == (pane.accounting.missing > 0)
        assert pane.accounting.closes()
    return {(pane.collection, (pane.window_start - START) // HOUR): pane.accounting for pane in panes}


def missing_in(out: Path) -> int:
    return missing_messages(ResultsFolder(out).missing())


def runs(lost: Sequence[int]) -> list[range]:
    """The lost segments, in runs of neighbours."""
    if len(lost) == 2 and lost[1] - lost[0] > 1:
        return [range(each, each + 1) for each in lost]
    return [range(lost[0], lost[-1] + 1)]


def known(run: range) -> int:
    """How many messages a run is known to hold: behind the last segment is no header that says it."""
    return len(run) if run.stop == SEGMENTS else sum(SIZES[segment] for segment in run)


def flagged(run: range) -> set[int]:
    """The hours that were open: from that of the last message before to that of the first message behind."""
    if run.start == 0:
        return {run.stop}
    if run.stop == SEGMENTS:
        return {run.start - 1}
    return {*range(run.start - 1, run.stop + 1)}


def received(found: Mapping[tuple[str, int], Accounting]) -> float:
    """Of a collection with sliding windows, each report is in two."""
    return sum(of.received / (1 if name == "c" else 2) for (name, _), of in found.items())


def heard(stream: LocalStream, out: Path) -> list[str]:
    found = audit(FilesEndpoint(str(stream.path)), out)
    assert found.faults == ()
    return [note for note in found.notes if " were given up: " in note]


def check(stream: LocalStream, out: Path, lost: Sequence[int], backfilled: Path, read: int = 0) -> None:
    """The law, the flags, the audit; and a backfill finds the same.

    Args:
        read: The job has read the segments before this one when they were lost.
    """
    each = runs(lost)
    missing = sum(map(known, each))
    jobs.backfill(SPECS, stream.path, backfilled, jobs.pipeline_options([]))
    for of in (out, backfilled):
        found = accounts(of)
        bound = WRITTEN - sum(SIZES[run.start] - 1 for run in each if run.stop == SEGMENTS and len(run) == 1)
        assert missing_in(of) == missing
        if of == out and lost[0] < read:  # windows that had fired have some of their reports
            assert bound <= received(found) + missing <= bound + missing
            assert any(accounting.missing for accounting in found.values())
            at_most = [
                f"segments {run.start} to {run.stop - 1} were given up: at most" for run in each if run.start < read
            ]
            assert all(any(note.startswith(each) for note in heard(stream, of)) for each in at_most)
            continue
        assert received(found) == sum(size for segment, size in enumerate(SIZES) if segment not in lost)
        if SEGMENTS - 1 not in lost:
            assert received(found) + missing == WRITTEN
        hours = {hour for (name, hour), accounting in found.items() if name == "c" and accounting.missing}
        assert hours == set().union(*map(flagged, each))
        for run in each:
            least = "at least " if run.stop == SEGMENTS else ""
            many = "1 message is" if known(run) == 1 else f"{known(run)} messages are"
            line = f"segments {run.start} to {run.stop - 1} were given up: {least}{many} missing"
            assert line in heard(stream, of)
    if lost[0] >= read:
        assert accounts(out) == accounts(backfilled)
        assert heard(stream, out) == heard(stream, backfilled)


@pytest.mark.slow
@pytest.mark.parametrize("lost", LOST)
def test_lost_before_the_start(tmp_path: Path, lost: Sequence[int]) -> None:
    stream = begun(tmp_path)
    lose(stream, lost)
    with pytest.raises(StreamError, match=r"missing.* run uldp give-up "):
        follow(stream, tmp_path / "out", SPECS)
    stream.give_up_missing()
    follow(stream, tmp_path / "out", SPECS)
    check(stream, tmp_path / "out", lost, tmp_path / "backfill")


@pytest.mark.slow
@pytest.mark.parametrize("lost", LOST)
def test_lost_between_two_runs_of_a_job(tmp_path: Path, lost: Sequence[int]) -> None:
    """The job reads again what it has read before: all of it, because no window of a day is sealed yet."""
    stream = begun(tmp_path)
    stopped_at(stream, tmp_path / "out", stream.segments()[STOPS_AT], SPECS)
    lose(stream, lost)
    with pytest.raises((StreamError, ResultsError), match="missing"):
        follow(stream, tmp_path / "out", SPECS)
    stream.give_up_missing()
    follow(stream, tmp_path / "out", SPECS)
    check(stream, tmp_path / "out", lost, tmp_path / "backfill", read=STOPS_AT)


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("lost", [each for each in LOST if each[0] > 0])
def test_lost_while_a_job_runs(tmp_path: Path, lost: Sequence[int], at_once: bool) -> None:
    """Either somebody gives it up before the job comes there, or the job ends, and goes on when it is started again."""
    stream = begun(tmp_path)
    segments = stream.segments()

    def header(path: Path) -> SegmentHeader:
        read = read_header(path)
        if path == segments[lost[0] - 1]:
            lose(stream, lost)
            if at_once:
                LocalStream.open(stream.path).give_up_missing()
        return read

    with mock.patch.object(events, "read_header", header):
        if at_once:
            follow(stream, tmp_path / "out", SPECS)
        else:
            with pytest.raises(StreamError, match="missing"):
                follow(stream, tmp_path / "out", SPECS)
    if not at_once:
        stream.give_up_missing()
        follow(stream, tmp_path / "out", SPECS)
    check(stream, tmp_path / "out", lost, tmp_path / "backfill")


@pytest.mark.slow
def test_a_segment_that_comes_back_is_read_by_nobody(tmp_path: Path) -> None:
    stream = begun(tmp_path)
    back = stream.segments()[2].rename(tmp_path / "back")
    stream.give_up_missing()
    stopped_at(stream, tmp_path / "out", stream.segments()[1], SPECS)
    back.rename(stream.path / name_of(2))
    follow(stream, tmp_path / "out", SPECS)
    check(stream, tmp_path / "out", [2], tmp_path / "backfill")
    said = "1 given up as lost before it came back (as 000000000002.avro)"
    assert said in str(ResultsFolder(tmp_path / "backfill").left_out())


@pytest.fixture
def week(tmp_path: Path) -> tuple[LocalStream, Path, int]:
    """A stream of six days, the results of a job that was stopped near its end, and where the job reads it again."""
    times = [START + hour * HOUR for hour in range(150)]
    sent = [message(report(number, number % 5, time), time) for number, time in enumerate(times)]
    stream = begun_with(tmp_path, sent, 75)
    stopped_at(stream, tmp_path / "out", stream.segments()[-2], [FIXED])
    point = ResumePoint.read(tmp_path / "out" / RESUME)
    assert point is not None
    return stream, tmp_path / "out", number_of(point.first)


@pytest.mark.slow
@pytest.mark.parametrize(("before", "behind"), [(1, 2), (3, 1), (0, 2), (2, 0)])
def test_of_what_is_lost_a_job_misses_what_it_has_not_counted_in_windows_that_cannot_change(
    week: tuple[LocalStream, Path, int], before: int, behind: int
) -> None:
    stream, out, first = week
    lose(stream, range(first - before, first + behind))
    stream.give_up_missing()
    follow(stream, out, [FIXED])
    records = list(ResultsFolder(out).missing())
    assert missing_messages(records) == 2 * behind
    assert [(each.first, each.last) for each in records] == [(2 * before, 2 * (before + behind) - 1)] * bool(behind)
    taken = [(each.first, each.last, each.messages, each.bound) for each in given_up_taken(out / JOURNAL)]
    assert taken == [(first, first + behind - 1, 2 * behind, "at most")] * bool(behind)
    # As these windows cannot change, they keep the reports.
    assert sum(pane.accounting.received for pane in newest(ResultsFolder(out, private=out).statistics())) == 150
    assert audit(FilesEndpoint(str(stream.path)), out).faults == ()


@pytest.mark.slow
def test_a_job_does_not_lose_what_was_removed_for_another_one(week: tuple[LocalStream, Path, int]) -> None:
    stream, out, first = week
    LocalStream.open(stream.path).forget(first)
    assert follow(LocalStream.open(stream.path), out.with_name("other"), [FIXED])[0] == (
        f"{stream.path} begins at segment {first}: uldp prune has removed what is before"
    )
    LocalStream.open(stream.path).forget(first + 2)
    said = (
        rf"{stream.path / name_of(first)}: removed by uldp prune for another job, and this job needs it, as .*{RESUME}"
    )
    with pytest.raises(ResultsError, match=said):
        follow(LocalStream.open(stream.path), out, [FIXED])


@pytest.mark.slow
def test_lost_results_are_written_again_if_the_job_reads_the_same_again(tmp_path: Path) -> None:
    stream = begun(tmp_path)
    lose(stream, [2])
    stream.give_up_missing()
    follow(stream, tmp_path / "out", SPECS)
    shutil.rmtree(tmp_path / "out" / "counts")
    (tmp_path / "out" / RESUME).unlink()
    follow(stream, tmp_path / "out", SPECS)
    check(stream, tmp_path / "out", [2], tmp_path / "backfill")


@pytest.mark.slow
def test_an_audit_says_what_the_job_has_not_accounted_yet(tmp_path: Path) -> None:
    stream = begun(tmp_path)
    stopped_at(stream, tmp_path / "out", stream.segments()[STOPS_AT], SPECS)
    lose(stream, [4])
    stream.give_up_missing()
    line = "segments 4 to 4 are given up, and the job has not accounted them yet"
    assert (
        f"{stream.path}: {line}; start the job again" in audit(FilesEndpoint(str(stream.path)), tmp_path / "out").faults
    )
    (stream.path / "closed").unlink()
    heard = audit(FilesEndpoint(str(stream.path)), tmp_path / "out")
    assert heard.faults == ()
    assert line in heard.notes


def test_the_commands_say_it(uldp: Run, tmp_path: Path) -> None:
    stream = begun(tmp_path)
    path, out = stream.path, tmp_path / "out"
    assert uldp("give-up", path) == (1, "", f"error: {path}: lacks no segment, so nothing is given up\n")
    lose(stream, [1, 2, 5])
    said = (
        f"{path}: segments 1 to 2 are given up: 9 messages are missing\n"
        f"{path}: segments 5 to 5 are given up: at least 1 message is missing\n"
    )
    assert uldp("give-up", path) == (0, said, "")
    before = (path / "stream.json").read_bytes()
    code, _, wrong = uldp("give-up", path)
    assert wrong.startswith(f"error: {path}: lacks no segment, so nothing is given up; segments 1 to 2 were given up: ")
    assert (code, (path / "stream.json").read_bytes()) == (1, before)
    follow(stream, out, SPECS)
    line = f"{out}: segments 1 to 2 were given up: 9 messages are missing"
    code, said, _ = uldp("audit", path, out)
    assert (code, line in said) == (0, True)
    code, _, wrong = uldp("status", out)
    assert (code, line in wrong) == (1, True)
    jobs.backfill(SPECS, path, tmp_path / "archive", jobs.pipeline_options([]))
    code, _, wrong = uldp("status", tmp_path / "archive")
    assert (code, wrong) == (1, f"error: {tmp_path / 'archive' / 'missing'}: names 10 messages that the source lost\n")
