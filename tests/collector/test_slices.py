"""Spans of slices against the same parts, slice by slice."""

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.collector.test_partial import SIGNALS, value
from uldp.collector.partial import PartialStatistic
from uldp.collector.slices import PartialSlices, counted_numbers
from uldp.mechanisms.protocol.cells import Cells, SparseCells, stack_cells
from uldp.schemas.pane import Accounting, Signals

SIZE, SLICE, SPAN = 5, 10, 30


@st.composite
def partials(draw: st.DrawFn) -> PartialStatistic:
    """A part with or without counted reports, in dense cells or sparse ones."""
    duplicate, late, rejected, missing = (draw(st.integers(0, 1000)) for _ in range(4))
    counted = draw(st.integers(0, 1000))
    cells: Cells | None = None
    if counted and draw(st.booleans()):
        cells = np.array(draw(st.lists(st.integers(0, 99), min_size=SIZE, max_size=SIZE)), dtype=np.int64)
    elif counted:
        cells = SparseCells(SIZE, np.array([draw(st.integers(0, SIZE - 1))]), np.array([counted]))
    received = counted + duplicate + late + rejected
    accounting = Accounting(received, counted, duplicate, late, rejected, missing)
    return PartialStatistic(cells, accounting, draw(SIGNALS))


PARTS = st.lists(st.tuples(st.integers(0, 9).map(lambda slot: slot * SLICE), partials()), max_size=6)
Values = dict[int, tuple[list[int] | None, Accounting, Signals]]


def span(parts: list[tuple[int, PartialStatistic]]) -> PartialSlices:
    return sum((PartialSlices.of(start, partial) for start, partial in parts), PartialSlices())


def values(of: PartialSlices) -> Values:
    slots = [slot for slot, _ in of.slices()]
    assert slots == sorted(set(slots)) == of.slots.tolist()
    return {start: value(partial) for start, partial in of.slices()}


def one_by_one(parts: list[tuple[int, PartialStatistic]]) -> Values:
    sums: dict[int, PartialStatistic] = defaultdict(PartialStatistic)
    for start, partial in parts:
        sums[start] += partial
    return {start: value(partial) for start, partial in sums.items()}


@given(PARTS)
def test_a_block_adds_slice_by_slice(parts: list[tuple[int, PartialStatistic]]) -> None:
    assert values(span(parts)) == one_by_one(parts)


@given(PARTS, PARTS, PARTS)
def test_blocks_are_a_commutative_monoid(
    a: list[tuple[int, PartialStatistic]],
    b: list[tuple[int, PartialStatistic]],
    c: list[tuple[int, PartialStatistic]],
) -> None:
    one, two, three = map(span, (a, b, c))
    before = values(one), values(two)
    whole = one_by_one([*a, *b, *c])
    assert values((one + two) + three) == values(one + (two + three)) == values((three + two) + one) == whole
    assert values(one + PartialSlices()) == values(PartialSlices() + one) == before[0]
    assert (values(one), values(two)) == before


@given(PARTS)
def test_a_block_is_cut_where_multiples_are(parts: list[tuple[int, PartialStatistic]]) -> None:
    whole = span(parts)
    cut = list(whole.cut(SPAN))
    assert [origin for origin, _ in cut] == sorted({start // SPAN * SPAN for start, _ in parts})
    assert all((of.slots // SPAN * SPAN == origin).all() for origin, of in cut)
    assert {start: each for _, of in cut for start, each in values(of).items()} == values(whole)


@given(st.lists(st.lists(st.integers(0, 9), min_size=SIZE, max_size=SIZE), min_size=1, max_size=4), st.booleans())
def test_counted_slices_are_received_and_counted(rows: list[list[int]], sparse: bool) -> None:
    starts = SLICE * np.arange(len(rows))
    dense = [np.array(row, dtype=np.int64) for row in rows]
    cells: list[Cells] = [SparseCells(SIZE, np.flatnonzero(row), row[row > 0]) if sparse else row for row in dense]
    skews = np.zeros((len(rows), 48), dtype=np.int64)
    skews[:, 3], skews[:, 30] = 2, np.arange(len(rows)) + 1
    improbable = np.arange(len(rows))
    found = values(PartialSlices(starts, counted_numbers(skews, improbable), stack_cells(cells)))
    for row, (counts, accounting, signals) in zip(range(len(rows)), found.values(), strict=True):
        assert counts == rows[row]
        assert accounting == Accounting(received=row + 3, counted=row + 3)
        assert (sum(signals.past), sum(signals.early), signals.improbable_reports) == (2, row + 1, row)
