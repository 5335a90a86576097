"""Counts are the same, sparse or dense, in groups or one by one."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from uldp.mechanisms.protocol.cells import (
    Cells,
    SparseCells,
    add_cells,
    as_dense,
    count_symbols,
    spread_rows,
    stack_cells,
    sum_rows,
    take_rows,
    unstack_cells,
)

SIZE = 40


@st.composite
def counts(draw: st.DrawFn) -> Cells:
    """Few symbols or many, sparse or dense."""
    counted = draw(st.dictionaries(st.integers(0, SIZE - 1), st.integers(1, 2**40), max_size=SIZE))
    symbols = sorted(counted)
    sparse = SparseCells(
        SIZE, np.array(symbols, dtype=np.int64), np.array([counted[s] for s in symbols], dtype=np.int64)
    )
    return sparse if draw(st.booleans()) else sparse.dense()


@given(counts(), counts(), counts())
def test_sums_are_a_commutative_monoid(a: Cells, b: Cells, c: Cells) -> None:
    def equal(one: Cells, other: Cells) -> bool:
        return np.array_equal(as_dense(one), as_dense(other))

    assert as_dense(add_cells(a, b)).tolist() == (as_dense(a) + as_dense(b)).tolist()
    assert equal(add_cells(a, b), add_cells(b, a))
    assert equal(add_cells(add_cells(a, b), c), add_cells(a, add_cells(b, c)))
    assert equal(add_cells(a, SparseCells(SIZE, np.array([], dtype=np.int64), np.array([], dtype=np.int64))), a)


def test_sums_are_sparse_while_few_symbols_were_reported() -> None:
    few = [SparseCells(SIZE, np.array([symbol]), np.array([1])) for symbol in range(SIZE)]
    total: Cells = few[0]
    for symbol, one in enumerate(few[1:], start=1):
        total = add_cells(total, one)
        assert isinstance(total, SparseCells) == (symbol + 1 < SIZE / 4)
    assert as_dense(total).tolist() == [1] * SIZE


def in_rows(cells: list[Cells]) -> list[list[int]]:
    return [as_dense(row).tolist() for row in cells]


@given(st.lists(counts(), min_size=1, max_size=5))
def test_rows_are_stacked_and_unstacked(rows: list[Cells]) -> None:
    stacked = stack_cells(rows)
    assert as_dense(stacked).tolist() == [cell for row in in_rows(rows) for cell in row]
    assert in_rows(unstack_cells(stacked, len(rows))) == in_rows(rows)


@given(st.lists(counts(), min_size=1, max_size=4), st.data())
def test_rows_are_spread_among_rows_of_zeros(rows: list[Cells], data: st.DataObject) -> None:
    k = data.draw(st.integers(len(rows), 7))
    at = sorted(data.draw(st.permutations(range(k)))[: len(rows)])
    wanted = [[0] * SIZE for _ in range(k)]
    for place, row in zip(at, in_rows(rows), strict=True):
        wanted[place] = row
    assert in_rows(unstack_cells(spread_rows(stack_cells(rows), np.array(at), k), k)) == wanted


@given(st.lists(counts(), min_size=1, max_size=5), st.data())
def test_rows_are_taken_and_summed(rows: list[Cells], data: st.DataObject) -> None:
    k = len(rows)
    first = data.draw(st.integers(0, k - 1))
    end = data.draw(st.integers(first + 1, k))
    taken = take_rows(stack_cells(rows), first, end, k)
    assert in_rows(unstack_cells(taken, end - first)) == in_rows(rows[first:end])
    assert as_dense(sum_rows(taken, end - first)).tolist() == np.sum(in_rows(rows[first:end]), axis=0).tolist()


def test_a_stack_of_sparse_rows_is_sparse() -> None:
    few = SparseCells(1 << 20, np.array([7]), np.array([1]))
    stacked = stack_cells([few] * 1000)
    assert isinstance(stacked, SparseCells)
    assert all(isinstance(row, SparseCells) for row in unstack_cells(spread_rows(stacked, np.arange(1000), 2000), 2000))


REPORTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, SIZE - 1)), max_size=60)


@given(REPORTS, st.sampled_from([SIZE, 10_000]), st.sampled_from([4, 9]))
def test_symbols_are_counted_by_group(reports: list[tuple[int, int]], size: int, k: int) -> None:
    symbols = np.array([symbol for _, symbol in reports], dtype=np.uint32)
    groups = np.array([group for group, _ in reports], dtype=np.int64)
    wanted = Counter(reports)
    found = count_symbols(symbols, groups, k, size)
    assert len(found) == k
    for group, counted in enumerate(found):
        assert as_dense(counted).tolist() == [wanted[group, symbol] for symbol in range(size)]


def test_memory_does_not_grow_with_groups_times_symbols() -> None:
    n, size = 1000, 1 << 20
    found = count_symbols(np.full(n, size - 1, dtype=np.uint32), np.arange(n), n, size)
    assert all(isinstance(counted, SparseCells) and counted.indices.tolist() == [size - 1] for counted in found)
