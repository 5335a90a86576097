"""A local stream that lacks a segment: no job counts the rest as if it were all."""

from pathlib import Path
from unittest import mock

import pytest

from tests.build import HOUR, START, message, report, spec
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.flags import Flag
from uldp.transforms.io.local import events
from uldp.transforms.io.local.segments import SegmentHeader, read_header
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import StreamError

SEGMENTS = 6
#: Which segment of a stream is missing, and whether the stream is closed. The last one of an open stream is to come.
CASES = [(number, closed) for number in range(SEGMENTS) for closed in (True, False)][:-1]
SPEC = spec(window={"size": "1h", "early_every": "1s", "allowed_lateness": "0s"})


def begun(path: Path, *, closed: bool) -> list[Path]:
    """A stream with two reports in each segment and hour."""
    stream = LocalStream.create(path, simulated_clock=True)
    for hour in range(SEGMENTS):
        times = [START + hour * HOUR, START + hour * HOUR + 1]
        stream.append([message(report(time, 0, time), time) for time in times])
    if closed:
        stream.close()
    return stream.segments()


def follow(tmp_path: Path) -> None:
    jobs.follow([SPEC], tmp_path / "stream", tmp_path / "out", jobs.pipeline_options([]))


@pytest.mark.slow
@pytest.mark.parametrize(("number", "closed"), CASES[2:])
def test_a_hole_that_appears_ends_the_job_before_a_window_behind_it_fires(
    tmp_path: Path, number: int, closed: bool
) -> None:
    segments = begun(tmp_path / "stream", closed=closed)

    def header(path: Path) -> SegmentHeader:
        read = read_header(path)
        if path == segments[number - 1]:
            segments[number].unlink()
        return read

    with (
        mock.patch.object(events, "read_header", header),
        pytest.raises(StreamError, match=rf"{segments[number]}: missing"),
    ):
        follow(tmp_path)
    panes = {
        pane.window_start: pane
        for pane in newest(ResultsFolder(tmp_path / "out", private=tmp_path / "out").statistics())
    }
    before = START + (number - 1) * HOUR
    assert [panes[START + hour * HOUR].n for hour in range(number - 1)] == [2] * (number - 1)
    assert max(panes, default=before) <= before
    assert all(Flag.INCOMPLETE in pane.flags for start, pane in panes.items() if start == before)
