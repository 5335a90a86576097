"""A local stream whose publish times jump: each report that was sent is accounted, whatever a clock says."""

import tempfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR, START
from tests.pipelines.intake.test_clock import Machine
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.jobs.settings import JobSettings
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message, Report
from uldp.transforms.io.archive import message_files
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import read_messages

SECOND, DAY = 1000, 24 * HOUR
SPEC = build.spec(window={"size": "1h", "allowed_lateness": "30m"}, mechanism={"name": "rr", "epsilon": 1.5})


def sent(n: int, start: int, clock: int = 0, every: int = SECOND) -> list[Message]:
    """One report every so many ms, on a stream whose clock is ahead by ``clock`` ms."""
    rng = np.random.default_rng(start)
    return [
        Message(Report(*SPEC.key, rng.bytes(16), at, 0).encode(), at + clock)
        for at in range(start, start + n * every, every)
    ]


def follow(tmp_path: Path, *segments: Sequence[Message], simulated_clock: bool = True) -> tuple[Accounting, int]:
    """What a job accounts in all windows, and how many late messages it keeps."""
    stream, out = LocalStream.create(tmp_path / "stream", simulated_clock=simulated_clock), tmp_path / "out"
    for segment in segments:
        stream.append(segment)
    stream.close()
    jobs.follow([SPEC], stream.path, out, jobs.pipeline_options([]), JobSettings(watermark_delay_ms=10_000))
    total = sum((pane.accounting for pane in newest(ResultsFolder(out).statistics())), Accounting())
    late = [message for file in message_files(out / "late") for message in read_messages(file)] if total.late else []
    return total, len(late)


@pytest.mark.slow
@pytest.mark.parametrize(("steady", "late"), [(True, 0), (False, 101)])
def test_a_post_under_a_clock_of_72_hours_ahead_makes_both_jobs_agree(tmp_path: Path, steady: bool, late: int) -> None:
    """Of 121 posts, one every 30 s, one is made while the clock of the machine is wrong; without the steady clock, the
    posts behind it are late for who reads the stream.
    """
    machine, segments = Machine(), []
    for number, message in enumerate(sent(121, Machine().truth, every=30 * SECOND)):
        machine.wrong, machine.uptime = 3 * DAY if number == 20 else 0, number * 30 * SECOND
        stamp = machine.clock.now() if steady else machine.truth + machine.wrong
        segments.append([message._replace(publish_time=stamp)])
    total, kept = follow(tmp_path, *segments)
    assert (total.received, total.counted, total.late, kept) == (121, 121 - late, late, late)
    jobs.backfill([SPEC], tmp_path / "stream", tmp_path / "backfill", jobs.pipeline_options([]))
    assert sum(pane.n for pane in newest(ResultsFolder(tmp_path / "backfill").statistics())) == 121


def test_on_a_real_clock_a_job_that_starts_long_after_the_reports_finds_none_late(tmp_path: Path) -> None:
    total, late = follow(tmp_path, *(sent(20, START + hour * HOUR) for hour in range(6)), simulated_clock=False)
    assert (total.received, total.counted, late) == (120, 120, 0)


def test_on_a_real_clock_a_message_from_the_future_is_of_now(tmp_path: Path) -> None:
    (liar,) = sent(1, START + 50 * SECOND)
    segments = [sent(100, START), [liar._replace(publish_time=2**62)], sent(100, START + 2 * HOUR)]
    total, _ = follow(tmp_path, *segments, simulated_clock=False)
    assert total.received == 201
    assert total.closes()


def test_a_job_warns_once_when_the_clock_turns_out_to_have_been_ahead(tmp_path: Path) -> None:
    """The clock is set back behind the first segment, whose publish times it had bounded."""
    stream, calls, said = LocalStream.create(tmp_path / "stream"), count(), list[str]()
    for published in (START + 3 * DAY, START, START):
        stream.append(sent(1, published))
    stream.close()
    jobs.follow(
        [SPEC],
        stream.path,
        tmp_path / "out",
        jobs.pipeline_options([]),
        JobSettings(say=said.append),
        # The first look at the clock is before that for a segment, and the second bounds the first segment.
        clock=lambda: (START if next(calls) > 1 else START + 3 * DAY) / 1000,
    )
    (warning,) = [line for line in said if "clock" in line]
    assert warning == (
        "warning: the watermark is ahead of the clock by 259,200 s, and reports until then count as late; set the clock"
        " of this machine"
    )


@pytest.mark.slow
@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    st.lists(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(START, START + 9 * DAY), min_size=1), max_size=5)
)
def test_no_publish_times_lose_a_report(published: list[list[int]]) -> None:
    reports = iter(sent(sum(map(len, published)), START))
    segments = [[next(reports)._replace(publish_time=time) for time in times] for times in published]
    with tempfile.TemporaryDirectory() as folder:
        total, late = follow(Path(folder), *segments)
    assert total.received == sum(map(len, published))
    assert total.closes()
    assert late == total.late
