"""Steps that count and add, against a count one report at a time."""

from collections import Counter
from typing import Any
from unittest import mock

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.testing.util import assert_that, equal_to
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR
from tests.counted import BITS, SIZE, SPECS, SYMBOLS, TARGETS, brute_force, columns, value
from uldp.collector.columns import MixedColumns
from uldp.collector.counting import count_support
from uldp.collector.partial import Partial
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.pane import Accounting
from uldp.transforms.count import (
    CollectSlices,
    CountSupport,
    KeyedPartial,
    SumCounts,
    _CountSpansFn,
)
from uldp.transforms.windows import at_time

PARTIAL = st.builds(
    build.part,
    st.none() | st.lists(st.integers(0, 99), min_size=3, max_size=3).map(lambda counts: np.array(counts)),
    st.builds(Accounting, *[st.integers(0, 99)] * 5),
)


SUM = SumCounts()  # type: ignore[no-untyped-call]


def fold(parts: list[Partial]) -> Partial:
    accumulator = SUM.create_accumulator()
    for part in parts:
        accumulator = SUM.add_input(accumulator, part)
    return accumulator


@given(st.lists(PARTIAL, max_size=6), st.lists(PARTIAL, max_size=6), st.lists(PARTIAL, max_size=6))
def test_sums_are_a_commutative_monoid(a: list[Partial], b: list[Partial], c: list[Partial]) -> None:
    whole = value(fold([*a, *b, *c]))
    folded = [fold(parts) for parts in (a, b, c)]
    merge = SUM.merge_accumulators
    assert value(merge(folded)) == whole
    assert value(merge(reversed(folded))) == whole
    assert value(merge([merge(folded[:2]), folded[2]])) == value(merge([folded[0], merge(folded[1:])])) == whole
    assert value(merge([SUM.create_accumulator(), *folded])) == whole
    assert value(SUM.extract_output(merge(folded))) == whole


@given(st.lists(PARTIAL, min_size=1, max_size=4))
def test_an_accumulator_survives_a_checkpoint_anywhere(parts: list[Partial]) -> None:
    coder = SUM.get_accumulator_coder()
    accumulator = SUM.create_accumulator()
    for part in parts:
        accumulator = SUM.add_input(coder.decode(coder.encode(accumulator)), part)
    assert value(accumulator) == value(fold(parts))


def dated(element: KeyedPartial, timestamp: Any = beam.DoFn.TimestampParam) -> tuple[Any, ...]:
    key, partial = element
    return key, timestamp.micros // 1000, *value(partial)


def dated_slices(element: KeyedPartial, timestamp: Any = beam.DoFn.TimestampParam) -> list[tuple[Any, ...]]:
    """The span's origin, and each slice at its last millisecond."""
    key, span = element
    assert timestamp.micros // 1000 == span.slots[0] // TARGETS[key].span_size * TARGETS[key].span_size
    return [(key, start + HOUR - 1, *value(partial)) for start, partial in span.slices()]


@pytest.mark.parametrize("bounded", [True, False])
def test_a_bundle_gives_one_sum_for_each_collection_and_slice(bounded: bool) -> None:
    """Of a stream at its last millisecond, and in spans else."""
    symbols, more, bits = [(0, {1}), (40, {10})], [(0, {1}), (1, {3})], [(2, {0, 4, 10})]
    parts = [
        MixedColumns((columns(SYMBOLS, symbols), columns(BITS, bits))),
        MixedColumns((columns(SYMBOLS, more),)),
    ]
    expected = [
        (spec.key, start + HOUR - 1, counts, accounting)
        for spec, reports in ((SYMBOLS, symbols + more), (BITS, bits))
        for start, (counts, accounting) in brute_force(reports).items()
    ]
    with beam.Pipeline("FnApiRunner") as pipeline:
        created = pipeline | beam.Create(parts, reshuffle=False)
        created.is_bounded = bounded
        date = beam.FlatMap(dated_slices) if bounded else beam.Map(dated)
        assert_that(created | CountSupport(SPECS) | date, equal_to(expected))


@pytest.mark.parametrize("hours", [(0, 1, 0), (0, 40, 40)])
def test_parts_of_slices_are_collected_into_the_blocks_of_a_bundle(hours: tuple[int, ...]) -> None:
    accounting = Accounting(received=1, duplicate=1)
    parts = [at_time(hour * HOUR + HOUR - 1, (SYMBOLS.key, build.part(None, accounting))) for hour in hours]
    expected = [
        (SYMBOLS.key, hour * HOUR + HOUR - 1, None, Accounting(received=n, duplicate=n))
        for hour, n in Counter(hours).items()
    ]
    with beam.Pipeline("FnApiRunner") as pipeline:
        created = pipeline | beam.Create(range(len(parts)), reshuffle=False)
        slices = created | beam.Map(parts.__getitem__).with_output_types(KeyedPartial)
        assert_that(slices | CollectSlices(SPECS) | beam.FlatMap(dated_slices), equal_to(expected))


@pytest.mark.parametrize(("deduplicated", "times"), [(True, 2), (False, 1)])
def test_ids_wait_only_where_a_step_has_compared_them(
    deduplicated: bool, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [columns(SYMBOLS, [(hour, {hour % SIZE}) for hour in range(100)])] * 2
    monkeypatch.setattr(_CountSpansFn, "MAX_WAITING", parts[0].nbytes)  # two parts without ids have fewer bytes
    assert 2 * parts[0].without_ids().nbytes < parts[0].nbytes
    fn = _CountSpansFn(SharedSpecs.of(SPECS), coded=deduplicated)
    fn.start_bundle()
    with mock.patch("uldp.transforms.count.count_support", wraps=count_support) as counting:
        for part in parts:
            fn.process(MixedColumns((part,)))
        found = {start: value(each) for _, span in fn._drain() for start, each in span.slices()}
    assert counting.call_count == times
    assert found == brute_force([(hour, {hour % SIZE}) for hour in range(100)] * 2)
