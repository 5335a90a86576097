"""Counts against a count one report at a time."""

from collections import Counter
from typing import Any

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
from uldp.collector.partial import PartialStatistic
from uldp.mechanisms.cells import as_dense
from uldp.schemas.arrays import Payloads
from uldp.schemas.collection import CollectionSpec
from uldp.schemas.pane import Accounting
from uldp.transforms.count import CountSupport, KeyedStatistic, SumCounts, count_support

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
ONE_SYMBOL = st.tuples(st.integers(0, 3), st.integers(0, SIZE - 1).map(lambda symbol: {symbol}))
ANY_BITS = st.tuples(st.integers(0, 3), st.sets(st.integers(0, SIZE - 1)))


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


def value(partial: PartialStatistic) -> tuple[list[int] | None, Accounting]:
    return None if partial.cells is None else as_dense(partial.cells).tolist(), partial.accounting


@given(st.lists(ONE_SYMBOL, max_size=40))
def test_symbols_are_counted_by_slice(reports: list[tuple[int, set[int]]]) -> None:
    counted = count_support(TARGETS[SYMBOLS.key], [columns(SYMBOLS, reports)])
    assert {start: value(partial) for start, partial in counted} == brute_force(reports)


@given(st.lists(ANY_BITS, max_size=40))
def test_bits_are_counted_by_slice(reports: list[tuple[int, set[int]]]) -> None:
    counted = count_support(TARGETS[BITS.key], [columns(BITS, reports)])
    assert {start: value(partial) for start, partial in counted} == brute_force(reports)


@pytest.mark.parametrize("spec", SPECS, ids=["symbols", "bits"])
def test_more_bits_than_a_byte_can_count(spec: CollectionSpec) -> None:
    reports = [(hour, {7}) for hour in (0, 2)] * 1000
    counted = count_support(TARGETS[spec.key], [columns(spec, reports)])
    assert {start: value(partial) for start, partial in counted} == brute_force(reports)


PARTIAL = st.builds(
    PartialStatistic,
    st.none() | st.lists(st.integers(0, 99), min_size=3, max_size=3).map(lambda counts: np.array(counts)),
    st.builds(Accounting, *[st.integers(0, 99)] * 5),
)


SUM = SumCounts()  # type: ignore[no-untyped-call]


def fold(parts: list[PartialStatistic]) -> PartialStatistic:
    accumulator = SUM.create_accumulator()
    for part in parts:
        accumulator = SUM.add_input(accumulator, part)
    return accumulator


@given(st.lists(PARTIAL, max_size=6), st.lists(PARTIAL, max_size=6), st.lists(PARTIAL, max_size=6))
def test_sums_are_a_commutative_monoid(
    a: list[PartialStatistic], b: list[PartialStatistic], c: list[PartialStatistic]
) -> None:
    whole = value(fold([*a, *b, *c]))
    folded = [fold(parts) for parts in (a, b, c)]
    merge = SUM.merge_accumulators
    assert value(merge(folded)) == whole
    assert value(merge(reversed(folded))) == whole
    assert value(merge([merge(folded[:2]), folded[2]])) == value(merge([folded[0], merge(folded[1:])])) == whole
    assert value(merge([SUM.create_accumulator(), *folded])) == whole
    assert value(SUM.extract_output(merge(folded))) == whole


@given(st.lists(PARTIAL, min_size=1, max_size=4))
def test_an_accumulator_survives_a_checkpoint_anywhere(parts: list[PartialStatistic]) -> None:
    coder = SUM.get_accumulator_coder()
    accumulator = SUM.create_accumulator()
    for part in parts:
        accumulator = SUM.add_input(coder.decode(coder.encode(accumulator)), part)
    assert value(accumulator) == value(fold(parts))


def dated(element: KeyedStatistic, timestamp: Any = beam.DoFn.TimestampParam) -> tuple[Any, ...]:
    key, partial = element
    return key, timestamp.micros // 1000, *value(partial)


def test_a_bundle_gives_one_sum_for_each_collection_and_slice_at_its_last_millisecond() -> None:
    symbols, more, bits = [(0, {1}), (2, {10})], [(0, {1}), (0, {3})], [(2, {0, 4, 10})]
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
        counted = pipeline | beam.Create(parts, reshuffle=False) | CountSupport(SPECS)
        assert_that(counted | beam.Map(dated), equal_to(expected))
