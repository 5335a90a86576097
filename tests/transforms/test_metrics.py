"""What a job counts for those who watch it, on a run where each report meets one fate."""

from typing import get_args

import apache_beam as beam
from apache_beam.metrics.metric import MetricsFilter
from apache_beam.transforms.window import IntervalWindow
from apache_beam.utils.windowed_value import PaneInfo, PaneInfoTiming, WindowedValue

from tests import build
from tests.build import MINUTE, START
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message, Missing
from uldp.transforms.aggregate import Aggregate
from uldp.transforms.count import KeyedPartial
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.metrics import NAMESPACE, CounterName
from uldp.transforms.seal import SealCounts

SPEC = build.spec(
    domain={"size": 4},
    mechanism={"name": "identity"},
    window={"size": "1h", "early_every": "10s", "allowed_lateness": "30m"},
    limits={"max_age": "3h"},
)


def report(number: int, minute: int, published: int) -> Message:
    sent = build.report(number, number % 4, START + minute * MINUTE, SPEC.key)
    return build.message(sent, START + published * MINUTE)


def fired(nonspeculative: int) -> WindowedValue:
    """A sum as it comes out of a window: -1 before the window's end, 0 on time, and more when it is late."""
    sums = SPEC.key, build.part(accounting=Accounting(received=1, rejected=1))
    info = PaneInfo(False, False, PaneInfoTiming.UNKNOWN, nonspeculative + 2, nonspeculative)
    return WindowedValue(sums, 0, (IntervalWindow(0, 3600),), info)


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


def test_a_window_is_counted_once_of_all_its_panes() -> None:
    pipeline = beam.Pipeline("FnApiRunner")
    sums = pipeline | beam.Create([-1, -1, 0, 1]) | beam.Map(fired).with_output_types(KeyedPartial)
    sums.is_bounded = False
    _ = sums | SealCounts([SPEC], simulated_clock=True)
    assert counters(pipeline) == {"panes": 4, "windows": 1}
