"""Beam's local runner keeps a sum for each window that can change, and nothing of the others."""

import os
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.build import HOUR, MINUTE, START, message, report, spec
from uldp.pipelines.jobs import local as jobs
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.internals import MergeableStateAdapter, Timestamp
from uldp.transforms.io.local import small_state
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
        jobs.follow([each], stream.path, out, jobs.pipeline_options([]), watermark_delay_ms=0, say=lambda _: None)
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.avro")}


@pytest.mark.nightly
@pytest.mark.parametrize("each", [FIXED, SLIDING], ids=["fixed", "sliding"])
def test_results_are_the_same_and_state_is_bounded(tmp_path: Path, each: CollectionSpec) -> None:
    stream = begun(tmp_path / "stream", 60, 3 * HOUR)
    with mock.patch.object(jobs, "small_state", nullcontext):
        expected = follow(stream, tmp_path / "large", each)
    windows, parts = [0], [0]
    tidy = small_state._Driver._tidy

    def watched(driver: Any, state: Any, watermark: Timestamp) -> None:
        tidy(driver, state, watermark)
        windows.append(len(MergeableStateAdapter(state).window_ids))
        parts.extend(len(of.get("elements", [])) for of in state.state.values())

    with mock.patch.object(small_state._Driver, "_tidy", watched):
        assert follow(stream, tmp_path / "small", each) == expected
    # Of 60 x 3 h, windows of two days at the most: a day in which late reports amend them, and what is spare.
    assert 0 < max(windows) <= 10
    assert max(parts) == 1


#: Bytes that the process may take more for each segment.
MOST = 50
SEGMENTS = int(os.environ.get("ULDP_SEGMENTS", "50000"))
#: Segments that wait for the job: each that waits takes memory until it is read.
AHEAD = 10


@pytest.mark.nightly
def test_a_job_takes_no_more_memory_for_more_segments(tmp_path: Path) -> None:
    """A report a minute, counted by the hour: the job is warm after two days of them, when the first ids expire."""
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    for number in range(AHEAD):
        append(stream, number, MINUTE)
    resident: dict[int, int] = {}
    read = LocalStreamEvents.read

    def watched(events: LocalStreamEvents, segments: Mapping[str, int]) -> None:
        read(events, segments)
        if events.segments + AHEAD <= SEGMENTS:
            append(stream, events.segments + AHEAD - 1, MINUTE)
        else:
            stream.close()
        if events.segments in (SEGMENTS // 5, SEGMENTS - 1):
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            resident[events.segments] = pages * os.sysconf("SC_PAGE_SIZE")

    with mock.patch.object(LocalStreamEvents, "read", watched):
        follow(stream, tmp_path / "out", spec(window={"size": "1h", "allowed_lateness": "10m"}))
    (first, before), (last, after) = sorted(resident.items())
    assert (after - before) / (last - first) < MOST
