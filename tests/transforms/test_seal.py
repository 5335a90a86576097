"""The step that seals the panes of a bounded job; flags are in tests/collector/test_sealing.py."""

from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import FixedWindows, TimestampedValue

from tests import build
from uldp.collector.collections import serve
from uldp.collector.partial import Partial
from uldp.schemas.pane import Accounting
from uldp.transforms.count import KeyedPartial
from uldp.transforms.seal import SealCounts


def test_a_pane_without_reports_is_none() -> None:
    spec = build.spec(domain={"size": 20}, mechanism={"name": "rr", "epsilon": 1.0})
    (of,) = serve([spec]).values()
    three = build.part(of.mechanism.statistic(np.full(3, 3, dtype=np.uint32)), Accounting(received=3, counted=3))
    parts: list[Any] = [(of.spec.key, three), (of.spec.key, Partial()), (of.spec.key, build.part())]
    with beam.Pipeline("FnApiRunner") as pipeline:
        sums = (
            pipeline
            | beam.Create([TimestampedValue(part, 0) for part in parts]).with_output_types(KeyedPartial)
            | beam.WindowInto(FixedWindows(3600))
        )
        sealed = sums | SealCounts([of.spec])
        assert_that(sealed | beam.Map(lambda counts: counts.n), equal_to([3]))
