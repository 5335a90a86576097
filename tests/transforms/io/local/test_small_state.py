"""Beam's local runner keeps a sum for each window that can change, and nothing of the others."""

import gc
import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.build import HOUR, START, message, report, spec
from uldp.pipelines.jobs import local as jobs
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.internals import evaluation_context
from uldp.transforms.io.local.events import LocalStreamEvents
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.local.waiting import Waiting

FIXED = spec(window={"size": "6h", "allowed_lateness": "2h"})
SLIDING = spec(window={"size": "12h", "period": "6h", "allowed_lateness": "2h"})


def begun(path: Path, segments: int, every_ms: int) -> LocalStream:
    """A stream with a report in each segment, each seventh of them late by three windows."""
    stream = LocalStream.create(path, simulated_clock=True)
    for number in range(segments):
        append(stream, number, every_ms)
    stream.close()
    return stream


def append(stream: LocalStream, number: int, every_ms: int) -> None:
    now = START + number * every_ms
    stream.append([message(report(number, number % 5, now - (number % 7 == 6) * 20 * HOUR), now)])


def follow(stream: LocalStream, out: Path, each: CollectionSpec) -> Mapping[str, bytes]:
    """The files of a job whose segments come one by one."""
    with mock.patch.object(Waiting, "MAX_SEGMENTS", 1):
        jobs.follow([each], stream.path, out, jobs.pipeline_options([]))
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.avro")}


@pytest.mark.parametrize("each", [FIXED, SLIDING], ids=["fixed", "sliding"])
def test_results_are_the_same_and_state_is_bounded(tmp_path: Path, each: CollectionSpec) -> None:
    stream = begun(tmp_path / "stream", 60, 3 * HOUR)
    with mock.patch.object(jobs, "small_state", nullcontext):
        expected = follow(stream, tmp_path / "large", each)
    keys = [0]
    context = evaluation_context()
    handle = context.handle_result

    def watched(given: Any, bundle: Any, timers: Any, result: Any) -> Any:
        # What the result before left.
        keys.append(max(map(len, given._transform_keyed_states.values())))
        return handle(given, bundle, timers, result)

    with mock.patch.object(context, "handle_result", watched):
        assert follow(stream, tmp_path / "small", each) == expected
    # Of 60 x 3 h, windows of two days at the most: a day in which late reports amend them, and what is spare.
    assert 0 < max(keys) <= 10


#: Bytes that the process may take more for each segment, beside what the allocators take at a time.
MOST, AT_A_TIME = 50, 2 << 20
#: Each takes a tenth of a second or more.
SEGMENTS = int(os.environ.get("ULDP_SEGMENTS", "3000"))
#: Segments that wait for the job: each that waits takes memory until it is read.
AHEAD = 10


def peak() -> int:
    """The most memory of this process that was in use since the last call, in bytes."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    Path("/proc/self/clear_refs").write_text("5")
    return int(line.split()[1]) * 1024


def objects() -> int:
    """Blocks of memory in which Python has objects."""
    gc.collect()
    return sys.getallocatedblocks()


@pytest.mark.nightly
def test_a_job_takes_no_more_memory_for_more_segments(tmp_path: Path) -> None:
    """A report an hour, counted by the hour: the job is warm after two days of them, when the first ids expire.

    What is in use falls when free memory is given back, and rises again. So the test compares the peaks of the second
    and the last fifth of the segments. What the allocators take at a time does not hide an object for each segment.
    """
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    for number in range(AHEAD):
        append(stream, number, HOUR)
    peaks, blocks = dict[int, int](), dict[int, int]()
    read, fifth = LocalStreamEvents.read, SEGMENTS // 5

    def watched(events: LocalStreamEvents, segments: Mapping[str, int]) -> None:
        read(events, segments)
        if events.segments + AHEAD <= SEGMENTS:
            append(stream, events.segments + AHEAD - 1, HOUR)
        else:
            stream.close()
        if events.segments % fifth == 0:
            peaks[events.segments // fifth], blocks[events.segments // fifth] = peak(), objects()

    with mock.patch.multiple(LocalStreamEvents, read=watched, POLL_SECONDS=0.005):
        follow(stream, tmp_path / "out", spec(window={"size": "1h", "allowed_lateness": "10m"}))
    segments = 3 * fifth
    assert blocks[5] - blocks[2] < segments
    assert peaks[5] - peaks[2] < MOST * segments + AT_A_TIME
