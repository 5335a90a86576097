"""What a job counts for those who watch it, on a run where each report meets one fate."""

from collections import Counter
from typing import get_args

import apache_beam as beam
import pytest
from apache_beam.coders import registry
from apache_beam.metrics.metric import MetricsFilter
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream as ScriptedStream
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Timestamp

from tests import build
from tests.build import MINUTE, START
from uldp.collector.collections import serve
from uldp.collector.window_keys import WindowKeys
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message, Missing
from uldp.transforms import panes
from uldp.transforms.aggregate import Aggregate
from uldp.transforms.count import KeyedSpan
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.metrics import NAMESPACE, CounterName
from uldp.transforms.panes import FirePanes

SPEC = build.spec(
    domain={"size": 4},
    mechanism={"name": "identity"},
    window={"size": "1h", "early_every": "10s", "allowed_lateness": "30m"},
    limits={"max_age": "3h"},
)


def report(number: int, minute: int, published: int) -> Message:
    sent = build.report(number, number % 4, START + minute * MINUTE, SPEC.key)
    return build.message(sent, START + published * MINUTE)


def counters(pipeline: beam.Pipeline) -> dict[str, int]:
    result = pipeline.run()
    result.wait_until_finish()
    found = result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))["counters"]
    assert {metric.key.metric.name for metric in found} <= set(get_args(CounterName))
    return {metric.key.metric.name: metric.result for metric in found}


def test_every_report_is_counted_by_its_fate() -> None:
    sent = [report(n, n % 120, 120) for n in range(100)]
    copies, early, old = sent[:7], [report(n, 131, 120) for n in range(5)], [report(n, -61, 120) for n in range(3)]
    pipeline = beam.Pipeline("FnApiRunner")
    messages = [*sent, *copies, *early, *old, Message(b"no report", START)]
    noon = START + 120 * MINUTE
    missing = Missing("t/0", 0, 6, noon, noon), Missing("t/1", 0, 4, noon, noon)
    _ = pipeline | beam.Create([Chunk(messages, missing[:1]), Chunk((), missing[1:])]) | Aggregate([SPEC])
    assert counters(pipeline) == {
        "received": 116,
        "counted": 100,
        "duplicate": 7,
        "late": 0,
        "missing": 12,
        "rejected": 9,
        "too_early": 5,
        "expired": 3,
        # Two that reports name, and the one in which what is older was published.
        "panes": 3,
        "windows": 3,
    }


#: What ``Counted`` counted, by name.
COUNTED: Counter[str] = Counter()


class Counted:
    """A counter of this process: Beam's local runner gives none of those that timers increase."""

    def __init__(self, name: str) -> None:
        self._name = name

    def inc(self, n: int = 1) -> None:
        COUNTED[self._name] += n


def test_a_window_is_counted_once_of_all_its_panes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panes, "counter", Counted)
    served, hour = serve([SPEC])[SPEC.key], Timestamp(START // 1000 + 3600)
    place = WindowKeys(1).place(served)
    part = build.part(accounting=Accounting(received=1, rejected=1)).at(START + place.offset)
    stream = ScriptedStream(coder=registry.get_coder(KeyedSpan)).with_output_types(KeyedSpan)
    for moment in (hour - 3600, hour - 60, hour, hour + 1):  # early twice, on time, late
        stream.advance_watermark_to(moment).add_elements(
            [TimestampedValue(((place.group, START), part), hour - 1)]
        ).advance_processing_time(11)
    with beam.Pipeline("BundleBasedDirectRunner", options=PipelineOptions(["--streaming"])) as pipeline:
        _ = pipeline | stream.advance_watermark_to_infinity() | FirePanes([SPEC], simulated_clock=True)
    assert COUNTED == {"panes": 5, "windows": 1}
