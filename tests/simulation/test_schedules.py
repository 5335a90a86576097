"""Nothing lost, nothing counted twice: generated schedules of arrivals, retries, garbage, failures and restarts.

Many schedules run in one pipeline, each in a collection of its own. ``ULDP_SCHEDULES=20000`` runs as many as that, and
``ULDP_SEED`` others; the id of a test is the seed that gives its schedules again. One that fails is shrunk by itself
and wants a name among ``REGRESSIONS``. 20,000 have run with ``ULDP_SEED=1000``, and 2,000 with 5000 since sliding
windows are summed from slices; none failed.
"""

import logging
import os
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar
from unittest import mock

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream as ScriptedStream
from apache_beam.utils.timestamp import Timestamp
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.build import MINUTE, START
from tests.reports import reports_of
from tests.simulation.oracle import Expected, expect
from tests.simulation.schedules import END, MAX_MESSAGE_BYTES, NUMBERS, POLICIES, Delivery, Row, Schedule, schedules
from tests.simulation.scripts import InjectedError, Script, failing, scripts
from uldp.collector import plain_decoder, seen
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.arrays import ReportIds
from uldp.schemas.pane import Accounting
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message
from uldp.schemas.statistic import Statistic
from uldp.transforms.aggregate import Aggregate
from uldp.transforms.coders import MessageCoder
from uldp.transforms.io.archive import message_files
from uldp.transforms.io.message_files import read_messages
from uldp.transforms.io.results.write import WriteResults

SCHEDULES = int(os.environ.get("ULDP_SCHEDULES", "500"))
SEED = int(os.environ.get("ULDP_SEED", "0"))
#: Schedules of one pipeline.
TOGETHER = 100
SEEDS = range(SEED, SEED + -(-SCHEDULES // TOGETHER))

Example = TypeVar("Example")


@pytest.fixture(autouse=True)
def _failures_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "apache_beam")


def named(batch: Sequence[Schedule]) -> dict[str, Schedule]:
    return {f"schedule-{index}": schedule for index, schedule in enumerate(batch)}


def stream_of(batch: Sequence[Schedule], segment: int, clock: Sequence[bool]) -> ScriptedStream:
    """All schedules as one stream, in the order of publishing."""
    segments: dict[int, list[Message]] = defaultdict(list)
    for collection, schedule in named(batch).items():
        for delivery in schedule.deliveries:
            segments[delivery.published // segment].append(schedule.encode(collection, delivery))
    stream: ScriptedStream = ScriptedStream(coder=MessageCoder()).with_output_types(Message)
    for index in range(-(-END // segment)):
        stream.advance_watermark_to(Timestamp(micros=(START + index * segment * MINUTE) * 1000))
        if segments[index]:
            stream.add_elements(sorted(segments[index], key=lambda message: message.publish_time))
        if clock[index % len(clock)]:
            stream.advance_processing_time(11)
    stream.advance_watermark_to_infinity()
    return stream


def run(batch: Sequence[Schedule], script: Script, out: Path, *, deduplicate: bool = True) -> None:
    """Run a batch into ``out``: until it is cut, if it is, and then from the beginning to the end."""
    specs = [spec for collection, schedule in named(batch).items() for spec in schedule.specs(collection)]

    def job(clock: Sequence[bool]) -> None:
        with beam.Pipeline("BundleBasedDirectRunner", options=PipelineOptions(["--streaming"])) as pipeline:
            messages = pipeline | stream_of(batch, script.segment, clock)
            _ = messages | Aggregate(specs, deduplicate=deduplicate, shards=2) | WriteResults(str(out))

    with mock.patch.object(plain_decoder, "MAX_MESSAGE_BYTES", MAX_MESSAGE_BYTES):
        if script.cut is not None:
            with suppress(InjectedError), failing(script.failures, script.cut):
                job(script.clocks[0])
        with failing(script.failures):
            job(script.clocks[1])


@dataclass
class Actual:
    """What became of a schedule, read from the results."""

    panes: list[Statistic]
    late: Counter[tuple[bytes, int]]
    rejections: Counter[tuple[str, bytes, int]]


def one_by_one(data: bytes) -> list[bytes]:
    """A message for each report in ``data``; ``data`` itself if it does not decode."""
    try:
        return [report.encode() for report in reports_of(data)]
    except ValueError:
        return [data]


def results_of(batch: Sequence[Schedule], out: Path) -> dict[str, Actual]:
    found = {collection: Actual([], Counter(), Counter()) for collection in named(batch)}

    def owner(data: bytes) -> Actual:
        match = re.search(rb"schedule-\d+", data)
        assert match is not None
        return found[match[0].decode()]

    for pane in newest(ResultsFolder(out).statistics()) if (out / "counts").exists() else []:
        found[pane.collection].panes.append(pane)
    for file in message_files(out / "late") if (out / "late").exists() else []:
        for message in read_messages(file):
            owner(message.data).late.update((data, message.publish_time) for data in one_by_one(message.data))
    for record in ResultsFolder(out).rejected():
        for data, published in record.each():
            reports = one_by_one(data) or [data]  # a batch of an unknown collection may hold none, and counts as one
            assert len(reports) == record.reports // record.messages
            owner(data).rejections.update((record.reason, each, published) for each in reports)
    return found


def violations(schedule: Schedule, expected: Expected, actual: Actual) -> list[str]:
    """What of the promises is broken, one line each."""
    broken = []
    if actual.late != expected.late_messages:
        broken.append(f"late {actual.late}, not {expected.late_messages}")
    if actual.rejections != expected.rejections:
        broken.append(f"rejected {actual.rejections}, not {expected.rejections}")
    counted: dict[int, set[tuple[int, int]]] = {number: set() for number in range(NUMBERS)}
    total = Accounting()
    windows = set()
    for pane in actual.panes:
        window = pane.version, (pane.window_start - START) // MINUTE
        windows.add(window)
        for number in np.flatnonzero(pane.cells).tolist():
            counted[number].add(window)
        if pane.cells.max(initial=0) > 1:
            broken.append(f"{window}: counts {pane.cells.tolist()}")
        accounting = pane.accounting
        told = accounting.received, accounting.late, accounting.rejected, accounting.counted
        right = *(part[window] for part in (expected.received, expected.late, expected.rejected)), pane.cells.sum()
        if told != right or not accounting.closes():
            broken.append(f"{window}: {accounting}, not received, late, rejected, counted {right}")
        if pane.pane.kind.value == "early":
            broken.append(f"{window}: the last pane is early")
        total += accounting
    if windows != set(expected.received):
        broken.append(f"windows {windows}, not {set(expected.received)}")
    for number, cells in counted.items():
        allowed = expected.counted.get(number, {frozenset()})
        if frozenset(cells) not in allowed:
            broken.append(f"report {number} counted in {cells}, not in one of {allowed}")
    # A report stands in each sliding window that holds it, and a message of which nobody knows whose it is in none.
    overlap = schedule.policy.size // schedule.policy.period
    kept = sum(actual.late.values()) + sum(actual.rejections.values())
    if (total.counted + total.duplicate) // overlap + kept != expected.reports:
        broken.append(f"{expected.reports} reports, {total}, {kept} kept")
    return broken


def broken_promises(batch: Sequence[Schedule], script: Script, **settings: bool) -> dict[str, list[str]]:
    """Run a batch; return what is broken by collection."""
    with tempfile.TemporaryDirectory() as folder:
        run(batch, script, Path(folder), **settings)
        found = results_of(batch, Path(folder))
    broken = {}
    for collection, schedule in named(batch).items():
        lines = violations(schedule, expect(schedule, collection, script.segment), found[collection])
        if lines:
            broken[collection] = lines
    return broken


def shrunk(schedule: Schedule, script: Script) -> Schedule:
    """Leave out deliveries, one by one, as long as the schedule by itself breaks a promise."""
    for index in reversed(range(len(schedule.deliveries))):
        fewer = replace(schedule, deliveries=schedule.deliveries[:index] + schedule.deliveries[index + 1 :])
        if fewer.deliveries and broken_promises([fewer], script):
            schedule = fewer
    return schedule


def examples(strategy: st.SearchStrategy[Example], n: int, start: int) -> list[Example]:
    """Draw n examples, the same for the same ``start``."""
    drawn: list[Example] = []

    @seed(start)
    @settings(max_examples=n, phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def draw(example: Example) -> None:
        drawn.append(example)

    draw()
    return drawn


@pytest.mark.slow
@pytest.mark.parametrize("start", SEEDS)
def test_nothing_lost_and_nothing_counted_twice(start: int, record_property: Callable[[str, object], None]) -> None:
    batch = examples(schedules(POLICIES[start % len(POLICIES)]), min(TOGETHER, SCHEDULES), start)
    script = examples(scripts(), 10, start)[-1]  # the first is the least
    record_property("schedules", len(batch))
    record_property("seed", start)
    broken = broken_promises(batch, script)
    if broken:
        first = min(broken)
        schedule = shrunk(named(batch)[first], script)
        alone = broken_promises([schedule], script)
        pytest.fail(
            f"seed {start}: {len(broken)} of {len(batch)} schedules fail\n{first}: {broken[first]}\n"
            f"{script}\nshrunk: {schedule}\nby itself: {alone}"
        )


#: Schedules that failed once.
REGRESSIONS = {
    # A sliding window forgot its report when the last window of the report's own slice had closed; a copy that named
    # a later slice of the same window was counted there again.
    "a copy in a window that still slides": (
        Schedule(POLICIES[4], False, (Delivery(200, (Row(1, 200),)), Delivery(285, (Row(1, 240),)))),
        Script(segment=15),
    )
}


@pytest.mark.parametrize("name", REGRESSIONS)
def test_what_failed_once(name: str) -> None:
    schedule, script = REGRESSIONS[name]
    assert not broken_promises([schedule], script)


def nothing_new(self: seen.SeenIds, ids: ReportIds, *of_ids: object) -> seen.Added:
    return seen.Added(np.zeros(len(ids), dtype=np.bool_), [])


def test_the_simulation_sees_double_counts_and_losses() -> None:
    twice = Schedule(
        POLICIES[0], False, (Delivery(5, (Row(1, 5),)), Delivery(20, (Row(1, 5), Row(2, 5)), batched=True))
    )
    (lines,) = broken_promises([twice], Script(), deduplicate=False).values()
    assert "(1, 0): counts [0, 2, 1, 0, 0, 0, 0, 0]" in lines
    with mock.patch.object(seen.SeenIds, "add", nothing_new):
        (lines,) = broken_promises([twice], Script()).values()
    assert "report 1 counted in set(), not in one of {frozenset({(1, 0)})}" in lines


@pytest.mark.slow
def test_schedules_hold_every_fate() -> None:
    """What is never generated is never tested."""
    fates: Counter[str] = Counter()
    for start, policy in enumerate(POLICIES):
        for schedule in examples(schedules(policy), TOGETHER, start):
            expected = expect(schedule, "any", Script.segment)
            fates.update(reason for reason, _, _ in expected.rejections)
            fates["late"] += len(expected.late_messages)
            fates["counted"] += len(expected.counted)
            fates["together"] += sum(len(allowed) > 1 for allowed in expected.counted.values())
            copies = expected.received.total() - expected.late.total() - expected.rejected.total()
            fates["duplicate"] += copies - sum(len(next(iter(allowed))) for allowed in expected.counted.values())
    # A message of a thousand windows would be most of a schedule, and no spec here has a cap on senders.
    rare = {Reason.TOO_MANY_WINDOWS, Reason.OVER_SENDER_LIMIT}
    wanted = {*Reason, "late", "counted", "together", "duplicate"} - rare
    assert {fate for fate in wanted if fates[fate] < 10} == set()
