"""A cap on the reports of a sender, through bundles, other workers, bundles that fail, expiry, and an aggregation."""

import copy
from collections.abc import Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream as ScriptedStream
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.utils.timestamp import Timestamp

from tests import build
from tests.build import HOUR, SENDER_KEY, START
from tests.transforms.bags import Bag, Cell, Timer
from uldp.collector.columns import MixedColumns, ReportColumns
from uldp.collector.origins import Origins, as_column
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.reasons import Reason
from uldp.schemas.records import SENDER, Message
from uldp.transforms.aggregate import Aggregate
from uldp.transforms.coders import MixedColumnsCoder
from uldp.transforms.limit_senders import LimitSenders, _LimitFn

CAP = 3
CAPPED = build.spec(
    window={"size": "1h", "allowed_lateness": "30m"}, limits={"max_reports_per_sender": CAP, "cap_senders": True}
)
#: No report of the first hour is counted any more.
CLOSED = START + HOUR + HOUR // 2


def columns(senders: Sequence[int], first: int = 0, hour: int = 0) -> ReportColumns:
    """Reports of these senders, each a message with a number, in an hour."""
    n = len(senders)
    times = np.full(n, START + hour * HOUR)
    numbers = np.arange(first, first + n)
    stamps = as_column([("t/0/", SENDER, f"s{sender}") for sender in senders])
    part = build.columns([(number, 7) for number in numbers.tolist()], times, numbers.astype(np.uint32) % 5)
    origins = Origins(np.array(senders, dtype=np.uint64), times, times, numbers, stamps)
    return ReportColumns(*CAPPED.key, part.report_ids, part.slices, part.payloads, part.signals, origins)


def mixed(*parts: ReportColumns) -> MixedColumns:
    return MixedColumns(parts)


def ids(element: MixedColumns) -> list[int]:
    assert all(part.origins is None for part in element)  # the next steps need them no more
    return [number for part in element for number in part.report_ids[:, 0].tolist()]


def test_the_coder_keeps_what_messages_said() -> None:
    with_origins = columns([5, 6, 5])
    without = build.columns([(1, 2)])
    read = [*MixedColumnsCoder().decode(MixedColumnsCoder().encode(mixed(with_origins, without)))]
    assert read[1].origins is None
    origins, given = read[0].origins, with_origins.origins
    assert origins is not None
    assert given is not None
    for name in ("senders", "event_times", "published", "numbers", "stamps"):
        assert getattr(origins, name).tolist() == getattr(given, name).tolist()
    assert read[0].signals.tolist() == with_origins.signals.tolist()
    coder = MixedColumnsCoder()
    assert len(coder.encode(mixed(with_origins))) <= 100 + coder.estimate_size(mixed(with_origins))


def scripted(*events: int | ReportColumns) -> ScriptedStream:
    """Elements, each a bundle, and in between where the watermark goes, in milliseconds."""
    stream = ScriptedStream(coder=MixedColumnsCoder())
    for event in events:
        if isinstance(event, int):
            stream.advance_watermark_to(Timestamp(micros=event * 1000))
        else:
            stream.add_elements([mixed(event)])
    return stream.advance_watermark_to_infinity().with_output_types(MixedColumns) or stream


@pytest.mark.parametrize(("watermark", "counted"), [(CLOSED - 1, CAP), (CLOSED, CAP + 1)])
def test_a_shard_is_forgotten_when_its_reports_can_be_counted_no_more(watermark: int, counted: int) -> None:
    # Decoding calls such a report late, so that it never comes this far; here it shows what the state still holds.
    with beam.Pipeline("BundleBasedDirectRunner", options=PipelineOptions(["--streaming"])) as pipeline:
        stream = scripted(START, columns([1, 1]), columns([1, 1, 2], 2), watermark, columns([1], 5))
        limited = pipeline | stream | LimitSenders([CAPPED], 2)
        assert_that(limited.columns | beam.FlatMap(ids), equal_to([0, 1, 2, 4, 5][: counted + 1]), "Counted")
        reasons = limited.rejected | beam.FlatMap(lambda record: [record.reason] * record.reports)
        assert_that(reasons, equal_to([Reason.OVER_SENDER_LIMIT] * (5 - counted)), "Rejected")


class Shard:
    """All state of one shard. A copy is what a runner goes back to when a bundle fails."""

    def __init__(self) -> None:
        self.counted, self.token, self.timer = Bag(), Cell(), Timer()


class Worker:
    """One process of the step."""

    def __init__(self) -> None:
        self.fn = _LimitFn(SharedSpecs([CAPPED]), forgets=True)
        self.fn.setup()

    def counts(self, shard: Shard, senders: Sequence[int], first: int = 0) -> int:
        """Process one element; how many of its reports are let through."""
        element = (0, CLOSED), mixed(columns(senders, first))
        outputs = list(self.fn.process(element, shard.counted, shard.token, shard.timer))
        return sum(len(ids(output)) for output in outputs if isinstance(output, MixedColumns))


def test_a_new_worker_takes_over_where_the_other_was_stopped() -> None:
    shard, first = Shard(), Worker()
    assert (first.counts(shard, [1, 1]), first.counts(shard, [2])) == (2, 1)
    assert Worker().counts(shard, [1, 1, 2, 2, 2]) == (CAP - 2) + (CAP - 1)
    assert first.counts(shard, [1, 2]) == 0  # it sees what the other one let through
    assert shard.timer.times == [CLOSED]


def test_a_bundle_that_fails_leaves_no_trace() -> None:
    shard, worker = Shard(), Worker()
    assert worker.counts(shard, [1]) == 1
    before = copy.deepcopy(shard)
    assert worker.counts(shard, [1, 1]) == 2  # the runner drops this bundle, with what it wrote
    assert worker.counts(before, [1, 1, 1]) == CAP - 1


def test_the_timer_frees_all_state_of_a_shard() -> None:
    shard, worker = Shard(), Worker()
    worker.counts(shard, [1] * CAP)
    worker.fn.forget((0, CLOSED), shard.counted, shard.token)
    assert (shard.counted.entries, shard.token.value, [*worker.fn._cache]) == ([], None, [])


def test_a_job_whose_specs_have_no_cap_has_no_such_step() -> None:
    def steps(**limits: Any) -> set[str]:
        pipeline = beam.Pipeline("FnApiRunner")
        spec = build.spec(limits={"max_reports_per_sender": CAP} | limits)
        _ = pipeline | beam.Create([Message(b"", START)]) | Aggregate([spec], sender_key=SENDER_KEY)
        return {label.split("/")[1] for label in pipeline.applied_labels if "/" in label}

    assert steps(cap_senders=True) - steps() == {"LimitSenders", "AllRejected"}
