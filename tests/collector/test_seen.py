"""The ids that a stage has seen: against a Python set, whenever they expire, and however many bits are kept."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from uldp.collector import seen
from uldp.collector.id_table import BLOCK
from uldp.collector.seen import SeenIds
from uldp.schemas.arrays import ReportIds, Words

Id = tuple[int, int]

SECRET = bytes(range(16))
#: Words of which few bits differ, and the differences are where a hash by multiplication is weak.
WORDS = st.sampled_from([0, 1, 2, 2**31, 2**32, 2**62, 2**63, 2**63 + 2**31, 2**64 - 1])
#: An id, the time at which it expires, and whether all its bits are kept.
ROWS = st.tuples(st.tuples(WORDS, WORDS), st.integers(-1, 3), st.booleans())
BATCHES = st.lists(st.lists(ROWS, max_size=25), max_size=8)


def as_ids(ids: Iterable[Id]) -> ReportIds:
    return np.array(list(ids), dtype=np.uint64).reshape(-1, 2)


def random_ids(n: int, seed: int = 1) -> ReportIds:
    return np.random.default_rng(seed).integers(0, 2**64, (n, 2), dtype=np.uint64)


def news(known: SeenIds, rows: list[tuple[Id, int, bool]]) -> list[bool]:
    ids, until, exact = ([row[part] for row in rows] for part in range(3))
    added = known.add(as_ids(ids), np.array(until, dtype=np.int64), np.array(exact, dtype=np.bool_))  # type: ignore[arg-type]
    assert sum(len(hashes[0]) for _, hashes in added.lots) == added.new.sum()
    return added.new.tolist()  # type: ignore[no-any-return]


@given(BATCHES, st.lists(st.integers(-1, 3), min_size=8, max_size=8))
@example([[((0, 1), 2, False), ((0, 1), 1, False), ((0, 1), 1, True)]], [0] * 8)
def test_an_id_is_new_unless_it_is_there_and_has_not_been_forgotten(
    batches: list[list[tuple[Id, int, bool]]], times: list[int]
) -> None:
    """In a batch and across them, a copy may name another expiry, and another way of keeping it."""
    known, reference, now = SeenIds(SECRET), dict[Id, int](), -2
    for batch, time in zip(batches, times, strict=False):
        expected = []
        for id_, until, _ in batch:
            expected.append(id_ not in reference)
            reference.setdefault(id_, until)
        assert news(known, batch) == expected
        assert len(known) == len(reference)
        now = max(now, time)
        known.forget(now)
        reference = {id_: until for id_, until in reference.items() if until > now}


def test_a_call_may_have_many_more_ids_than_are_added_at_once() -> None:
    ids = random_ids(2 * BLOCK + 5)
    known = SeenIds(SECRET)
    assert known.add(np.concatenate([ids, ids[::-1]])).new.tolist() == [True] * len(ids) + [False] * len(ids)
    until = np.arange(len(ids)) // 100
    known = SeenIds(SECRET)
    assert known.add(np.repeat(ids, 2, axis=0), np.repeat(until, 2)).new.tolist() == [True, False] * len(ids)
    known.forget(49)
    assert (known.add(ids, 1000).new == (until <= 49)).all()


@pytest.mark.parametrize("exact", [False, True])
def test_what_was_added_is_restored(exact: bool) -> None:
    """A set that has the secret and the hashes of another knows the same ids."""
    known, ids = SeenIds(SECRET), random_ids(20_000)
    restored = SeenIds(SECRET)
    for lot, hashes in known.add(ids, np.arange(len(ids)) % 3, exact).lots:
        assert lot.exact == exact
        restored.restore(lot, hashes)
    assert len(restored) == len(ids)
    restored.forget(0)
    assert (restored.add(ids, 3, exact).new == (np.arange(len(ids)) % 3 == 0)).all()


def test_hashes_that_are_there_are_not_restored_again() -> None:
    known = SeenIds(SECRET)
    ((lot, hashes),) = known.add(random_ids(10), 2).lots
    known.restore(lot._replace(until=1), hashes)
    assert len(known) == 10
    known.forget(1)
    assert len(known) == 10


def colliding(key: Words, low: Words, high: Words) -> tuple[Words, Words]:
    """First words that are equal for ids with one word equal."""
    return low.copy(), high.copy()


def test_ids_with_equal_hashes_are_copies_unless_all_bits_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "hash_words", colliding)
    one, other = as_ids([(7, 1)]), as_ids([(7, 2)])
    for exact in (False, True):
        known = SeenIds(SECRET)
        known.add(one, exact=exact)
        assert known.add(other, exact=exact).new.tolist() == [exact]


# Memory.


@pytest.mark.parametrize(("exact", "most"), [(False, 20), (True, 32)])
def test_an_id_takes_few_bytes_and_what_has_expired_takes_none(exact: bool, most: int) -> None:
    known = SeenIds(SECRET)
    for hour in range(3):
        known.add(random_ids(150_000, seed=hour), hour, exact)
    assert known.nbytes <= most * len(known)
    known.forget(1)
    assert len(known) == 150_000
    assert known.nbytes <= most * len(known)
    known.forget(2)
    assert (len(known), known.nbytes) == (0, 0)
