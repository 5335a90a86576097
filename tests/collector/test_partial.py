"""Parts of windows are a commutative monoid, with all that they hold: of one slice, and of many against one by one."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from uldp.collector.partial import Partial, numbers_of, stack, sum_parts
from uldp.collector.signals import SenderCounts
from uldp.mechanisms.protocol.cells import Cells, SparseCells, as_dense, stack_cells
from uldp.schemas.pane import SKEW_RANGES, Accounting, Signals

SIZE, SLICE, SPAN = 5, 10, 30
COUNTERS = st.integers(0, 1000)


@st.composite
def partials(draw: st.DrawFn) -> Partial:
    """A part with or without counted reports, in dense cells or sparse ones."""
    duplicate, late, rejected, missing, counted = (draw(COUNTERS) for _ in range(5))
    cells: Cells | None = None
    if counted and draw(st.booleans()):
        cells = np.array(draw(st.lists(st.integers(0, 99), min_size=SIZE, max_size=SIZE)), dtype=np.int64)
    elif counted:
        cells = SparseCells(SIZE, np.array([draw(st.integers(0, SIZE - 1))]), np.array([counted]))
    received = counted + duplicate + late + rejected
    senders = draw(st.lists(st.integers(1, 5)))
    return build.part(
        cells,
        Accounting(received, counted, duplicate, late, rejected, missing),
        skew=np.array(draw(st.lists(COUNTERS, min_size=2 * SKEW_RANGES, max_size=2 * SKEW_RANGES))),
        improbable=draw(COUNTERS),
        senders=SenderCounts.of(np.array(senders, dtype=np.uint64)) if senders else None,
        payloads=None if cells is None else SparseCells(16, np.array([draw(st.integers(0, 15))]), np.array([counted])),
    )


PARTS = st.lists(st.tuples(st.integers(0, 9).map(lambda slot: slot * SLICE), partials()), max_size=6)
Value = tuple[list[int] | None, Accounting, Signals, list[int] | None]


def value(partial: Partial) -> Value:
    cells, payloads = (None if each is None else as_dense(each).tolist() for each in (partial.cells, partial.payloads))
    return cells, partial.accounting, partial.signals(0), payloads


def span(parts: list[tuple[int, Partial]]) -> Partial:
    return sum((partial.at(start) for start, partial in parts), Partial())


def values(of: Partial) -> dict[int, Value]:
    slots = [slot for slot, _ in of.slices()]
    assert slots == sorted(set(slots)) == of.slots.tolist()
    return {start: value(partial) for start, partial in of.slices()}


def one_by_one(parts: list[tuple[int, Partial]]) -> dict[int, Value]:
    sums: dict[int, Partial] = defaultdict(Partial)
    for start, partial in parts:
        sums[start] += partial
    return {start: value(partial) for start, partial in sums.items()}


@given(PARTS)
def test_parts_of_slices_add_slice_by_slice(parts: list[tuple[int, Partial]]) -> None:
    assert values(span(parts)) == one_by_one(parts)


@given(PARTS, PARTS, PARTS)
def test_parts_of_slices_are_a_commutative_monoid(
    a: list[tuple[int, Partial]], b: list[tuple[int, Partial]], c: list[tuple[int, Partial]]
) -> None:
    one, two, three = map(span, (a, b, c))
    before = values(one), values(two)
    whole = one_by_one([*a, *b, *c])
    assert values((one + two) + three) == values(one + (two + three)) == values((three + two) + one) == whole
    assert values(one + Partial()) == values(Partial() + one) == before[0]
    assert (values(one), values(two)) == before


@given(PARTS)
def test_slices_are_cut_where_multiples_are(parts: list[tuple[int, Partial]]) -> None:
    whole = span(parts)
    cut = list(whole.cut(SPAN, 0))
    assert [origin for origin, _ in cut] == sorted({start // SPAN * SPAN for start, _ in parts})
    assert all((of.slots // SPAN * SPAN == origin).all() for origin, of in cut)
    assert {start: each for _, of in cut for start, each in values(of).items()} == values(whole)


@given(PARTS)
def test_slices_are_stacked_again(parts: list[tuple[int, Partial]]) -> None:
    whole = span(parts)
    assert values(stack(dict(whole.slices()))) == values(whole)
    assert values(sum_parts(part.at(slot) for slot, part in parts)) == values(whole)


@given(PARTS, st.integers(-20, 100), st.integers(0, 90))
def test_a_window_is_the_sum_of_the_slices_that_it_holds(
    parts: list[tuple[int, Partial]], start: int, size: int
) -> None:
    whole = span(parts)
    inside = {slot: part for slot, part in whole.slices() if start <= slot < start + size}
    assert values(whole.between(start, start + size)) == {slot: value(part) for slot, part in inside.items()}
    # What is missing is missing in the window that begins with its slice alone.
    wanted = sum(inside.values(), Partial())
    lost = sum(part.accounting.missing for slot, part in inside.items() if slot != start)
    found = whole.window(start, start + size)
    if len(found):
        found = replace(found, numbers=found.numbers + numbers_of(1, missing=lost))
    assert value(found) == value(wanted)


@pytest.mark.parametrize("sparse", [False, True])
def test_numbers_are_given_by_column(sparse: bool) -> None:
    rows = np.array([[1, 0, 0, 0, 2], [0, 9, 0, 0, 0], [0, 0, 0, 0, 1]])
    cells: list[Cells] = [SparseCells(SIZE, np.flatnonzero(row), row[row > 0]) if sparse else row for row in rows]
    n, improbable = np.array([3, 4, 5]), np.arange(3)
    skew = np.zeros((3, 2 * SKEW_RANGES), dtype=np.int64)
    skew[:, 3], skew[:, 30] = 2, n - 2
    found = values(
        Partial(SLICE * np.arange(3), numbers_of(3, skew, improbable, received=n, counted=n), stack_cells(cells))
    )
    for row, (counts, accounting, signals, _) in zip(range(3), found.values(), strict=True):
        assert counts == rows[row].tolist()
        assert accounting == Accounting(received=row + 3, counted=row + 3)
        assert (sum(signals.past), sum(signals.early), signals.improbable_reports) == (2, row + 1, row)
