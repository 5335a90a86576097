"""Beam's local runner with less work for each bundle of a local job: the results are those of the runner as it is."""

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import apache_beam as beam
import pytest
from apache_beam.coders import VarIntCoder
from apache_beam.transforms import core, userstate
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.trigger import _ListStateTag, _ReadModifyWriteStateTag
from apache_beam.typehints.typecheck import TypeCheckWrapperDoFn

from tests.build import HOUR, START, message, report, spec
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.results.files import refuse
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.internals import Timestamp
from uldp.transforms.io.local.events import LocalStreamEvents
from uldp.transforms.io.local.lighter_runner import copied_state, copied_steps, remembered_specs
from uldp.transforms.io.local.runner_internals import (
    DirectUnmergedState,
    EvaluationContext,
    TransformWatermarks,
    transform_evaluator,
)
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.local.waiting import Waiting

#: What the job changes of the runner.
CHANGES = ("copied_steps", "full_bundles", "next_timers", "small_state")
#: Collections whose windows slide have a key each.
NAMES = [f"c{number}" for number in range(8)]
FIXED = [spec(window={"size": "6h", "allowed_lateness": "2h"})]
SLIDING = [spec(collection=name, window={"size": "12h", "period": "6h", "allowed_lateness": "2h"}) for name in NAMES]


def append(stream: LocalStream, number: int, every_ms: int, names: list[str]) -> None:
    """A segment with a report of each collection, of each seventh segment late by three windows."""
    now, late = START + number * every_ms, (number % 7 == 6) * 20 * HOUR
    stream.append(
        [
            message(report(len(names) * number + each, number % 5, now - late, (name, 1)), now)
            for each, name in enumerate(names)
        ]
    )


def follow(stream: LocalStream, out: Path, specs: list[CollectionSpec]) -> list[str]:
    """The panes of a job whose segments come one by one."""
    with mock.patch.object(Waiting, "MAX_SEGMENTS", 1):
        jobs.follow(specs, stream.path, out, jobs.pipeline_options([]))
    return sorted(map(repr, ResultsFolder(out, refuse).panes()))


@dataclass
class Work:
    """What the runner did for a job: bundles of each step, its most keys, and looks for timers of a step with keys."""

    panes: list[str]
    bundles: Counter[str]
    keys: int
    looks: int


def watched(stream: LocalStream, out: Path, specs: list[CollectionSpec]) -> Work:
    context, watermarks, bundles, keys, looks = EvaluationContext, TransformWatermarks, Counter[str](), [0], [0]
    handle, extract = context.handle_result, watermarks.extract_transform_timers

    def handled(given: Any, bundle: Any, timers: Any, result: Any) -> Any:
        bundles[result.transform.full_label] += 1
        keys.append(max(map(len, given._transform_keyed_states.values())))  # what the result before left
        return handle(given, bundle, timers, result)

    def extracted(step: Any) -> Any:
        looks[0] += len(step._keyed_states) >= len(specs)
        return extract(step)

    with (
        mock.patch.object(context, "handle_result", handled),
        mock.patch.object(watermarks, "extract_transform_timers", extracted),
    ):
        return Work(follow(stream, out, specs), bundles, max(keys), looks[0])


@pytest.mark.parametrize(
    ("specs", "segments", "every_hours"),
    [(FIXED, 60, 3), pytest.param(SLIDING, 12, 2, marks=pytest.mark.slow)],
    ids=["fixed", "sliding"],
)
def test_results_are_the_same_of_less_work(
    tmp_path: Path, specs: list[CollectionSpec], segments: int, every_hours: int
) -> None:
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    for number in range(segments):
        append(stream, number, every_hours * HOUR, [each.collection for each in specs])
    stream.close()
    with ExitStack() as stack:
        for change in CHANGES:
            stack.enter_context(mock.patch.object(jobs, change, nullcontext))
        before = watched(stream, tmp_path / "before", specs)
    after = watched(stream, tmp_path / "after", specs)
    assert after.panes == before.panes != []
    assert after.bundles["Aggregate/Decode/DecodeColumns/ParDo(_DecodeFn)"] == segments
    assert (before.bundles["WriteResults/WriteRejected"], after.bundles["WriteResults/WriteRejected"]) == (segments, 0)
    assert 2 * after.bundles.total() < before.bundles.total()
    assert 0 < 3 * after.looks < before.looks
    # Windows of two days at the most: a day in which late reports amend them, and what is spare.
    assert 0 < after.keys <= 10


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
        append(stream, number, HOUR, ["c"])
    peaks, blocks = dict[int, int](), dict[int, int]()
    read, fifth = LocalStreamEvents.read, SEGMENTS // 5

    def watched(events: LocalStreamEvents, segments: Mapping[str, int]) -> None:
        read(events, segments)
        if events.segments + AHEAD <= SEGMENTS:
            append(stream, events.segments + AHEAD - 1, HOUR, ["c"])
        else:
            stream.close()
        if events.segments % fifth == 0:
            peaks[events.segments // fifth], blocks[events.segments // fifth] = peak(), objects()

    with mock.patch.multiple(LocalStreamEvents, read=watched, POLL_SECONDS=0.005):
        follow(stream, tmp_path / "out", [spec(window={"size": "1h", "allowed_lateness": "10m"})])
    segments = 3 * fifth
    assert blocks[5] - blocks[2] < segments
    assert peaks[5] - peaks[2] < MOST * segments + AT_A_TIME


# What a bundle that fails must not change: the state of a key, and a step.

BAG, VALUE, OF_A_TRIGGER = _ListStateTag("user/bag"), _ReadModifyWriteStateTag("user/value"), "a trigger's"
WINDOWS = "a window", "another"


def filled() -> Any:
    state = DirectUnmergedState()
    for window in WINDOWS:
        state.add_state(window, BAG, b"a")
        state.add_state(window, VALUE, [b"v"])
        state.set_timer(window, "user/due", TimeDomain.WATERMARK, Timestamp(5))
    return state


def changed(state: Any) -> None:
    """Change all that a bundle can change."""
    state.add_state(WINDOWS[0], BAG, b"b")
    state.add_state(WINDOWS[0], VALUE, [b"w"])
    state.set_timer(WINDOWS[0], "user/due", TimeDomain.WATERMARK, Timestamp(9))
    state.set_timer(WINDOWS[0], "user/early", TimeDomain.REAL_TIME, Timestamp(9))
    state.clear_state(WINDOWS[1], BAG)
    state.clear_timer(WINDOWS[1], "user/due", TimeDomain.WATERMARK)


def held(state: Any) -> tuple[Any, ...]:
    return state.timers, state.state, state.global_state


def test_a_copy_has_all_and_shares_nothing_that_changes() -> None:
    original = filled()
    expected = original.copy()
    with copied_state():
        copy = original.copy()
        again = copy.copy()
    assert held(copy) == held(again) == held(expected) == held(filled())
    changed(copy)
    assert held(original) == held(again) == held(filled()) != held(copy)


def test_the_state_of_triggers_is_copied_as_the_runner_does() -> None:
    original = filled()
    original.set_global_state(_ReadModifyWriteStateTag(OF_A_TRIGGER), [1])
    with copied_state():
        copy = original.copy()
    copy.get_global_state(_ReadModifyWriteStateTag(OF_A_TRIGGER)).append(2)
    assert original.get_global_state(_ReadModifyWriteStateTag(OF_A_TRIGGER)) == [1]


class Step(beam.DoFn):
    """A step that cannot be pickled."""

    def __init__(self) -> None:
        self.given = (number for number in range(0))

    def start_bundle(self) -> None:
        self.taken = list[int]()


def test_a_bundle_leaves_the_step_as_it_was_made() -> None:
    step = Step()
    with copied_steps():
        copies = [transform_evaluator.pickler.roundtrip(step) for _ in range(2)]
    for copy in copies:
        assert copy.given is step.given
        copy.start_bundle()
        copy.taken.append(1)
    assert [copy.taken for copy in copies] == [[1], [1]]
    assert vars(step).keys() == {"given"}


# What Beam remembers of a class of ``DoFn`` is what it would read again.

#: As Beam has them: this is read before a fixture of all tests remembers their answers.
READ, READ_ARGUMENTS = userstate.get_dofn_specs, core.get_function_arguments
COUNT, OTHER = (userstate.ReadModifyWriteStateSpec(name, VarIntCoder()) for name in ("count", "other"))


class Counting(beam.DoFn):
    def process(self, element: Any, count: Any = beam.DoFn.StateParam(COUNT)) -> None: ...


class Other(Counting):
    def process(self, element: Any, other: Any = beam.DoFn.StateParam(OTHER)) -> None: ...


@dataclass
class Unhashable:
    """A function that no dictionary takes as a key."""

    factor: int = 2

    def __call__(self, element: int, times: int = 1) -> list[int]:
        return [self.factor * element] * times


def made(kind: Any) -> Any:
    return kind()


def declared(dofn: beam.DoFn) -> tuple[set[Any], set[Any]]:
    return userstate.get_dofn_specs(dofn)  # by its module, as Beam does


@pytest.mark.parametrize(
    "dofn", [made(Counting), made(Other), beam.Map(lambda a, b=3: a).fn, beam.FlatMap(Unhashable()).fn]
)
def test_specs_and_arguments_are_those_that_beam_reads(dofn: beam.DoFn) -> None:
    read, arguments = READ(dofn), READ_ARGUMENTS(dofn, "process")
    with remembered_specs():
        for _ in range(2):
            for each in (made(Counting), made(Other), beam.Map(str).fn):
                core.get_function_arguments(each, "process")
            assert declared(dofn) == read
            assert core.get_function_arguments(dofn, "process") == arguments
            declared(dofn)[0].clear()
            core.get_function_arguments(dofn, "process")[0].clear()


def test_a_wrapper_declares_what_the_dofn_in_it_does() -> None:
    with remembered_specs():
        found = [
            declared(TypeCheckWrapperDoFn(each, each.get_type_hints()))[0] for each in map(made, (Counting, Other))
        ]
    assert found == [{COUNT}, {OTHER}]


@pytest.mark.parametrize(
    ("context", "replaced"),
    [
        (copied_state, lambda: DirectUnmergedState.copy),
        (copied_steps, lambda: transform_evaluator.pickler),
        (remembered_specs, lambda: userstate.get_dofn_specs),
    ],
)
def test_the_runner_is_as_before_when_a_context_ends(
    context: Callable[[], Any], replaced: Callable[[], object]
) -> None:
    before = replaced()
    with context():
        assert replaced() is not before
    assert replaced() is before
