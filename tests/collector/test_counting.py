"""Counts against a count one report at a time."""

import tracemalloc
from collections.abc import Iterator, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.counted import ANY_BITS, BITS, ONE_SYMBOL, SIZE, SPECS, SYMBOLS, TARGETS, brute_force, columns, value
from uldp.collector.collections import ServedCollection
from uldp.collector.columns import ReportColumns
from uldp.collector.counting import SpanKey, count_support
from uldp.collector.groups import Place
from uldp.collector.partial import NUMBERS, Partial
from uldp.mechanisms.protocol.cells import as_dense
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.collection import CollectionSpec


def count(
    spec: CollectionSpec, collections: Mapping[Place, Sequence[ReportColumns]]
) -> Iterator[tuple[SpanKey, Partial]]:
    return count_support(TARGETS[spec.key], collections, ServedCollection.span_start)


def counted(
    spec: CollectionSpec, reports: list[tuple[int, set[int]]]
) -> dict[int, tuple[list[int] | None, Accounting]]:
    """What ``count_support`` counts in each slice; each span begins at its origin."""
    place = Place(spec.key, 0)
    found = list(count(spec, {place: [columns(spec, reports)]})) if reports else []
    assert all(group == spec.key for (group, _), _ in found)
    spans = [(origin, span) for (_, origin), span in found]
    size = TARGETS[spec.key].span_size
    assert all(origin % size == 0 and (span.slots // size * size == origin).all() for origin, span in spans)
    return {start: value(partial) for _, span in spans for start, partial in span.slices()}


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
    for key, span in count(spec, halves):
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
        spans = list(count(spec, collections))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [len(span) for *_, span in spans] == [1] * 2000
    output = sum(span.numbers.nbytes + as_dense(span.cells).nbytes for *_, span in spans if span.cells is not None)
    assert output == 2000 * 8 * (NUMBERS + SIZE)
    assert peak < 5 * output
