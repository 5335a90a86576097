"""Fixed windows of a bounded job, against Beam's own windows."""

from collections import Counter

import apache_beam as beam
import numpy as np
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.utils.timestamp import Timestamp

from tests.transforms.test_slide import dated_windows, span
from uldp.schemas.specs.window import WindowSpec
from uldp.transforms.count import KeyedSpan, SumFixedWindows
from uldp.transforms.windows import at_time, window_fn

HOUR = WindowSpec.model_validate({"size": "1h"})
HOUR_MS, SPAN = 3_600_000, 3 * 3_600_000


def test_the_sums_are_those_of_beams_windows() -> None:
    rng = np.random.default_rng(1)
    times = rng.integers(0, 5 * HOUR_MS, 40).tolist()
    slots = list(zip(rng.choice(["c", "d"], 40).tolist(), times, range(1, 41), strict=True))
    wanted: Counter[tuple[tuple[str, int], int, int]] = Counter()
    for name, time, n in slots:
        (window,) = window_fn(HOUR).assign(beam.transforms.window.WindowFn.AssignContext(Timestamp(micros=time * 1000)))
        wanted[(name, 1), window.start.micros, window.end.micros] += n
    # Three hours are a span, as ``count_support`` cuts them.
    elements = [
        at_time(origin, (((name, 1), origin), span(time // HOUR_MS * HOUR_MS, n)))
        for name, time, n in slots
        for origin in [time // SPAN * SPAN]
    ]
    with beam.Pipeline("FnApiRunner") as pipeline:
        sums = (
            pipeline
            | "Indices" >> beam.Create(range(len(elements)))
            | "Parts" >> beam.Map(elements.__getitem__).with_output_types(KeyedSpan)
            | "Sum" >> SumFixedWindows(HOUR)
            | "Date" >> beam.FlatMap(dated_windows, HOUR_MS)
        )
        assert_that(sums, equal_to([(*window, n) for window, n in wanted.items()]))
