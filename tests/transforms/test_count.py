"""Steps that count and add, against a count one report at a time."""

from collections import Counter
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to

from tests import build
from tests.build import HOUR
from tests.counted import BITS, SPECS, SYMBOLS, TARGETS, brute_force, columns, value
from uldp.collector.columns import MixedColumns
from uldp.collector.window_keys import WindowKeys
from uldp.schemas.pane import Accounting
from uldp.transforms.count import CollectSlices, CountSupport, KeyedPartial, KeyedSpan
from uldp.transforms.windows import at_time


def slices(element: KeyedSpan, bounded: bool, timestamp: Any = beam.DoFn.TimestampParam) -> list[tuple[Any, ...]]:
    """The time of the element, and the start and the part of each slice of its collection."""
    (group, origin), span = element
    at, keys = timestamp.micros // 1000, WindowKeys(SHARDS)
    for served in TARGETS.values():
        if bounded and served.spec.key == group:
            assert at == origin == span.slots[0] // served.span_size * served.span_size
            return [(served.spec.key, start, *value(partial)) for start, partial in span.slices()]
        if not bounded and served.number == span.slots[0] - origin:
            assert (at, group) == (origin + HOUR - 1, keys.place(served).group)
            return [(served.spec.key, slot - served.number, *value(partial)) for slot, partial in span.slices()]
    raise AssertionError(group)


SHARDS = 16


@pytest.mark.parametrize("bounded", [True, False])
def test_a_bundle_gives_one_sum_for_each_collection_and_slice(bounded: bool) -> None:
    """Of a stream at its last millisecond, and in spans else."""
    symbols, more, bits = [(0, {1}), (40, {10})], [(0, {1}), (1, {3})], [(2, {0, 4, 10})]
    parts = [MixedColumns((columns(SYMBOLS, symbols), columns(BITS, bits))), MixedColumns((columns(SYMBOLS, more),))]
    expected = [
        (spec.key, start, counts, accounting)
        for spec, reports in ((SYMBOLS, symbols + more), (BITS, bits))
        for start, (counts, accounting) in brute_force(reports).items()
    ]
    with beam.Pipeline("FnApiRunner") as pipeline:
        created = pipeline | beam.Create(parts, reshuffle=False)
        created.is_bounded = bounded
        assert_that(created | CountSupport(SPECS, SHARDS) | beam.FlatMap(slices, bounded), equal_to(expected))


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("hours", [(0, 1, 0), (0, 40, 40)])
def test_parts_of_slices_are_collected_into_the_spans_of_a_bundle(hours: tuple[int, ...], bounded: bool) -> None:
    accounting = Accounting(received=1, duplicate=1)
    parts = [at_time(hour * HOUR + HOUR - 1, (SYMBOLS.key, build.part(None, accounting))) for hour in hours]
    expected = [
        (SYMBOLS.key, hour * HOUR, None, Accounting(received=n, duplicate=n)) for hour, n in Counter(hours).items()
    ]
    with beam.Pipeline("FnApiRunner") as pipeline:
        created = pipeline | beam.Create(range(len(parts)), reshuffle=False)
        created.is_bounded = bounded
        given = created | beam.Map(parts.__getitem__).with_output_types(KeyedPartial)
        assert_that(given | CollectSlices(SPECS, SHARDS) | beam.FlatMap(slices, bounded), equal_to(expected))
