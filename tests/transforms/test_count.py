"""Counts against a count one report at a time."""

import tracemalloc
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
from uldp.collector.collections import serve
from uldp.collector.columns import MixedColumns, ReportColumns
from uldp.collector.groups import Place
from uldp.collector.partial import NUMBERS, Partial
from uldp.collector.shared_specs import SharedSpecs
from uldp.mechanisms.protocol.cells import as_dense
from uldp.schemas.arrays import Payloads
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.count import (
    CollectSlices,
    CountSupport,
    KeyedPartial,
    SumCounts,
    _CountSpansFn,
    count_support,
)
from uldp.transforms.windows import at_time

SIZE = 11  # 10 values and a tag: bits of 2 bytes


def make_spec(collection: str, mechanism: str) -> CollectionSpec:
    return build.spec(
        collection=collection,
        domain={"size": SIZE - 1},
        mechanism={"name": mechanism, "epsilon": 1.0},
        sensitive=[0, 1, 2],
        tags=[{"name": "home"}],
    )


SYMBOLS, BITS = make_spec("symbols", "urr"), make_spec("bits", "urap")
SPECS = [SYMBOLS, BITS]
TARGETS = serve(SPECS)

#: A report as its slice, in hours, and the symbols that it supports: one, or any number.
ONE_SYMBOL = st.tuples(st.integers(0, 3) | st.integers(0, 99), st.integers(0, SIZE - 1).map(lambda symbol: {symbol}))
ANY_BITS = st.tuples(st.integers(0, 3) | st.integers(0, 99), st.sets(st.integers(0, SIZE - 1)))


def columns(spec: CollectionSpec, reports: list[tuple[int, set[int]]]) -> ReportColumns:
    payloads: Payloads
    if spec is SYMBOLS:
        payloads = np.array([min(supported) for _, supported in reports], dtype=np.uint32)
    else:
        bits = np.zeros((len(reports), SIZE), dtype=np.uint8)
        for row, (_, supported) in enumerate(reports):
            bits[row, sorted(supported)] = 1
        payloads = np.packbits(bits, axis=1)
    return build.columns([(0, 0)] * len(reports), [hour * HOUR for hour, _ in reports], payloads, key=spec.key)


def brute_force(reports: list[tuple[int, set[int]]]) -> dict[int, tuple[list[int], Accounting]]:
    """Counts and accounting of each slice."""
    n = Counter(hour for hour, _ in reports)
    support = Counter((hour, symbol) for hour, supported in reports for symbol in supported)
    return {
        hour * HOUR: ([support[hour, symbol] for symbol in range(SIZE)], Accounting(received=n[hour], counted=n[hour]))
        for hour in n
    }


def counted(
    spec: CollectionSpec, reports: list[tuple[int, set[int]]]
) -> dict[int, tuple[list[int] | None, Accounting]]:
    """What ``count_support`` counts in each slice; each span begins at its origin."""
    place = Place(spec.key, 0)
    found = list(count_support(TARGETS[spec.key], {place: [columns(spec, reports)]})) if reports else []
    assert all(group == spec.key for (group, _), _ in found)
    spans = [(origin, span) for (_, origin), span in found]
    size = TARGETS[spec.key].span_size
    assert all(origin % size == 0 and (span.slots // size * size == origin).all() for origin, span in spans)
    return {start: value(partial) for _, span in spans for start, partial in span.slices()}


def value(partial: Partial) -> tuple[list[int] | None, Accounting]:
    return None if partial.cells is None else as_dense(partial.cells).tolist(), partial.accounting


@given(st.lists(ONE_SYMBOL, max_size=40))
def test_symbols_are_counted_by_slice(reports: list[tuple[int, set[int]]]) -> None:
    assert counted(SYMBOLS, reports) == brute_force(reports)


@given(st.lists(ANY_BITS, max_size=40))
def test_bits_are_counted_by_slice(reports: list[tuple[int, set[int]]]) -> None:
    assert counted(BITS, reports) == brute_force(reports)


@given(
    st.lists(st.lists(ONE_SYMBOL, min_size=1, max_size=9), min_size=1, max_size=5),
    st.sampled_from(SPECS),
    st.integers(1, 3),
)
def test_collections_are_counted_together_as_each_alone(
    collections: list[list[tuple[int, set[int]]]], spec: CollectionSpec, size: int
) -> None:
    """In groups of some size."""
    apart, found = 1 << 49, [dict[int, tuple[list[int] | None, Accounting]]() for _ in collections]
    halves = {
        Place((f"group {number // size}", 1), number % size * apart): [
            columns(spec, part) for part in (each[:3], each[3:]) if part
        ]
        for number, each in enumerate(collections)
    }
    keys = set()
    for key, span in count_support(TARGETS[spec.key], halves):
        ((name, _), origin), of_slots = key, dict(span.slices())
        assert key not in keys
        assert list(of_slots) == sorted(of_slots) == span.slots.tolist()
        keys.add(key)
        for slot, partial in of_slots.items():
            number, start = divmod(slot, apart)
            assert start // TARGETS[spec.key].span_size * TARGETS[spec.key].span_size == origin
            found[int(name.split()[1]) * size + number][start] = value(partial)
    assert found == [brute_force(each) for each in collections]


@pytest.mark.parametrize("spec", SPECS, ids=["symbols", "bits"])
def test_empty_slices_of_many_collections_take_no_memory(spec: CollectionSpec) -> None:
    """Devices choose event times: as far apart as numbers of empty slices reach."""
    collections = {Place((f"c{number}", 1), 0): [columns(spec, [(0, {1}), (1023, {2})])] for number in range(1000)}
    tracemalloc.start()
    try:
        spans = list(count_support(TARGETS[spec.key], collections))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [len(span) for *_, span in spans] == [1] * 2000
    output = sum(span.numbers.nbytes + as_dense(span.cells).nbytes for *_, span in spans if span.cells is not None)
    assert output == 2000 * 8 * (NUMBERS + SIZE)
    assert peak < 5 * output


@pytest.mark.parametrize("spec", SPECS, ids=["symbols", "bits"])
def test_more_bits_than_a_byte_can_count(spec: CollectionSpec) -> None:
    reports = [(hour, {7}) for hour in (0, 2)] * 1000
    assert counted(spec, reports) == brute_force(reports)


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
