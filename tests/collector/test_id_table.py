"""A table of hashes: against a Python set, whatever the hashes, their order and the slots that they fall into."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from uldp.collector.id_table import _CLEARED, _FULL, _PACE, BLOCK, IdTable, Links
from uldp.schemas.arrays import Rows, Words

Hash = tuple[int, int]

#: Of a hash of the upper bits: those of few slots, so that chains are long.
WORDS = st.sampled_from([0, 1, 2, 2**31, 2**32, 2**62, 2**63, 2**63 + 2**31, 2**64 - 1])
BATCHES = st.lists(st.lists(st.tuples(WORDS, WORDS), max_size=25), max_size=8)


def as_columns(hashes: Iterable[Hash], columns: int = 2) -> list[Words]:
    return list(np.array(list(hashes), dtype=np.uint64).reshape(-1, 2).T[:columns].copy())


def random_hashes(n: int, columns: int = 1, seed: int = 1) -> list[Words]:
    return list(np.random.default_rng(seed).integers(0, 2**64, (columns, n), dtype=np.uint64))


def add(table: IdTable, hashes: list[Words]) -> list[bool]:
    """Look up, and add what is not there; which were new."""
    new = ~table.find(hashes)
    new[new] = table.insert([words.compress(new) for words in hashes])
    return new.tolist()  # type: ignore[no-any-return]


def assert_is_a_set(batches: Iterable[list[Words]], columns: int) -> None:
    table, reference = IdTable(columns), set[tuple[int, ...]]()
    for batch in batches:
        expected = []
        for row in zip(*(words.tolist() for words in batch), strict=True):
            expected.append(row not in reference)
            reference.add(row)
        assert add(table, batch) == expected
        assert len(table) == len(reference)
    assert set(zip(*(words.tolist() for words in table.columns()), strict=True)) == reference


@pytest.mark.parametrize("columns", [1, 2])
@given(BATCHES)
@example([[(0, 5)], [(2**63, 5 - 2**31 + 2**63)], [(2**63, 5 - 2**31 + 2**63)]])
@example([[(1, 2), (2, 1), (1, 2)], [(2, 1), (1, 1), (2, 2)], [(1, 1), (1, 2)]])
@example([[], [(0, 0)], [], [(0, 0), (0, 0)]])
def test_a_table_is_a_set(columns: int, batches: list[list[Hash]]) -> None:
    assert_is_a_set([as_columns(batch, columns) for batch in batches], columns)


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("block", [7, 8192])
def test_a_table_is_a_set_as_it_grows(monkeypatch: pytest.MonkeyPatch, block: int, columns: int) -> None:
    """Hundreds of calls, each with copies of its own hashes and of others, through several sizes of the table.

    A table that links seven rows at a time, and clears five slots, grows for as long as it takes to fill its new slots.
    """
    monkeypatch.setattr("uldp.collector.id_table.BLOCK", block)
    monkeypatch.setattr("uldp.collector.id_table._CLEARED", _CLEARED if block == BLOCK else 5)
    monkeypatch.setattr("uldp.collector.id_table._PACE", _PACE if block == BLOCK else 1)
    rng = np.random.default_rng(2)
    # The upper bits choose slots, and few of them differ from zero: half of the slots have most of the hashes.
    assert_is_a_set(
        (
            list(rng.integers(0, 50, (columns, rng.integers(1, 60)), dtype=np.uint64) << np.uint64(58))
            if number % 3
            else list(rng.integers(0, 2**64, (columns, 5), dtype=np.uint64))
            for number in range(250)
        ),
        columns,
    )


# Memory and time.


@pytest.mark.parametrize(("columns", "row", "most"), [(1, 12, 20), (2, 20, 28.2)])
def test_memory_is_bounded_by_the_hashes(columns: int, row: int, most: float) -> None:
    table, n = IdTable(columns), 200_000
    hashes = random_hashes(n, columns)
    for start in range(0, n, 1000):
        table.insert([words[start : start + 1000] for words in hashes])
        slots = 8 / _FULL
        growing = slots / 2 if len(table._next) else 0
        assert table.nbytes <= (row * 65 / 64 + slots + growing) * (len(table) + 1000)
        # With what a block may need, and while the table grows, too.
        assert table.nbytes <= most * (len(table) + 1000)


def test_an_addition_moves_so_many_rows_at_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, so a table takes no pause to grow."""
    table, linked = IdTable(1), [0]
    link = table._link

    def counted(heads: Links, start: int, slots: Rows) -> Rows:
        linked[0] += len(slots)
        return link(heads, start, slots)

    monkeypatch.setattr("uldp.collector.id_table.BLOCK", 100)
    monkeypatch.setattr(table, "_link", counted)
    (words,) = random_hashes(100_000)
    most = 0
    for start in range(0, len(words), 100):
        linked[0] = 0
        table.insert([words[start : start + 100]])
        most = max(most, linked[0])
    assert len(table) > 2 * most
    assert most == 100 * (_PACE + 1)
