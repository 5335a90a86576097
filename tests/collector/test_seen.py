"""A set of report ids: against a Python set, whatever the ids, their order and the slots that they fall into."""

from collections.abc import Iterable
from functools import partial
from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from uldp.collector import seen
from uldp.collector.seen import SeenIds
from uldp.schemas.arrays import ReportIds, Words

Id = tuple[int, int]

#: Words of which few bits differ, and the differences are where a hash by multiplication is weak.
WORDS = st.sampled_from([0, 1, 2, 2**31, 2**32, 2**62, 2**63, 2**63 + 2**31, 2**64 - 1])
BATCHES = st.lists(st.lists(st.tuples(WORDS, WORDS), max_size=25), max_size=8)


def as_ids(ids: Iterable[Id]) -> ReportIds:
    return np.array(list(ids), dtype=np.uint64).reshape(-1, 2)


def random_ids(n: int, seed: int = 1) -> ReportIds:
    return np.random.default_rng(seed).integers(0, 2**64, (n, 2), dtype=np.uint64)


def assert_is_a_set(batches: Iterable[ReportIds]) -> None:
    ids, reference = SeenIds(), set[Id]()
    for batch in batches:
        expected = []
        for low, high in batch.tolist():
            expected.append((low, high) not in reference)
            reference.add((low, high))
        assert ids.add(batch).tolist() == expected
        assert len(ids) == len(reference)


@given(BATCHES)
@example([[(0, 5)], [(2**63, 5 - 2**31 + 2**63)], [(2**63, 5 - 2**31 + 2**63)]])
@example([[(1, 2), (2, 1), (1, 2)], [(2, 1), (1, 1), (2, 2)], [(1, 1), (1, 2)]])
@example([[], [(0, 0)], [], [(0, 0), (0, 0)]])
def test_seen_ids_are_a_set(batches: list[list[Id]]) -> None:
    assert_is_a_set(map(as_ids, batches))


def one_slot(low: Words, high: Words) -> Words:
    return np.zeros_like(low)


def last_slot(low: Words, high: Words) -> Words:
    return np.full_like(low, 2**64 - 1)


def few_slots(low: Words, high: Words) -> Words:
    return (low ^ high) << np.uint64(62)


@pytest.mark.parametrize("hashes", [one_slot, last_slot, few_slots])
@given(BATCHES)
def test_ids_that_share_a_slot_are_told_apart(hashes: object, batches: list[list[Id]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seen, "_hashes", hashes)
        assert_is_a_set(map(as_ids, batches))


@pytest.mark.slow
@pytest.mark.parametrize("hashes", [None, few_slots], ids=["hashed", "few_slots"])
@pytest.mark.parametrize("block", [7, 8192])
def test_seen_ids_are_a_set_as_they_grow(monkeypatch: pytest.MonkeyPatch, hashes: object, block: int) -> None:
    """Hundreds of calls, each with copies of its own ids and of others, through five sizes of the table."""
    monkeypatch.setattr(seen, "_BLOCK", block)
    if hashes is not None:
        monkeypatch.setattr(seen, "_hashes", hashes)
    rng = np.random.default_rng(2)
    assert_is_a_set(rng.integers(0, 50, (rng.integers(1, 60), 2), dtype=np.uint64) for _ in range(250))


def test_a_call_may_have_many_more_ids_than_are_added_at_once() -> None:
    ids = random_ids(3 * seen._BLOCK)
    assert_is_a_set([np.concatenate([ids, ids[::-1]]), ids[:10], random_ids(10, seed=2)])


@pytest.mark.parametrize("position", [0, 1, 4999])
def test_of_many_copies_the_first_is_new(position: int) -> None:
    ids = random_ids(5000)
    ids[position:] = ids[position]
    new = SeenIds().add(ids)
    assert np.flatnonzero(new).tolist() == list(range(position + 1))


@pytest.mark.parametrize(
    "view",
    [
        lambda ids: ids[::-1],
        lambda ids: ids[::3],
        lambda ids: ids[:, ::-1],
        lambda ids: np.asfortranarray(ids),
        lambda ids: np.frombuffer(b"." + ids.tobytes(), np.uint64, 2 * len(ids), 1).reshape(-1, 2),
    ],
    ids=["reversed", "strided", "words swapped", "columns first", "unaligned and read-only"],
)
def test_ids_are_read_through_any_view_and_left_alone(view: object) -> None:
    assert callable(view)
    ids = view(random_ids(100) % np.uint64(7))
    ids.flags.writeable = False
    before = ids.copy()
    assert_is_a_set([ids, ids[:50]])
    np.testing.assert_array_equal(ids, before)


def test_the_ids_are_copied() -> None:
    ids, known = random_ids(10), SeenIds()
    assert known.add(ids).all()
    ids += np.uint64(1)
    assert known.add(ids).all()
    assert not known.add(random_ids(10)).any()


@given(BATCHES, st.randoms(use_true_random=False))
def test_the_ids_kept_are_the_set_of_these(batches: list[list[Id]], random: Random) -> None:
    known = SeenIds()
    new = [known.add(as_ids(batch)) for batch in batches]
    added = [
        id_ for batch, of in zip(batches, new, strict=True) for id_, is_new in zip(batch, of, strict=True) if is_new
    ]
    kept = np.array([random.random() < 0.5 for _ in added], dtype=np.bool_)
    known.keep(kept)
    assert len(known) == kept.sum()
    assert known.add(as_ids(added)).tolist() == (~kept).tolist()
    assert len(known) == len(added)


def test_some_of_many_ids_are_kept_in_their_memory_alone() -> None:
    known, ids = SeenIds(), random_ids(50_000)
    known.add(ids)
    kept = np.arange(len(ids)) >= 20_000
    known.keep(kept)
    assert memory(known) <= 20 * (30_000 + 1) + 16 * 30_000
    assert (known.add(ids) == ~kept).all()
    known.keep(np.zeros(len(known), dtype=np.bool_))
    assert memory(known) < 200
    assert known.add(ids).all()


def test_sets_are_apart() -> None:
    first, second = SeenIds(), SeenIds()
    ids = random_ids(100)
    assert first.add(ids).all()
    assert second.add(ids).all()


# Memory.


def memory(ids: SeenIds) -> int:
    return sum(array.nbytes for array in vars(ids).values() if isinstance(array, np.ndarray))


def test_an_empty_set_is_small() -> None:
    assert memory(SeenIds()) < 100


def test_memory_is_bounded_by_the_ids() -> None:
    ids, known = random_ids(200_000), SeenIds()
    for start in range(0, len(ids), 1000):
        known.add(ids[start : start + 1000])
        assert memory(known) <= 25 * (len(known) + 1) + 16 * (len(known) + 1000)
        assert len(known) <= len(known._heads)


def test_copies_take_no_memory() -> None:
    known, ids = SeenIds(), random_ids(1000)
    known.add(ids)
    before = memory(known)
    for id_ in random_ids(20, seed=2):
        known.add(np.concatenate([np.tile(id_, (2000, 1)), ids]))
    assert len(known) == 1020
    # The table has room for the 3000 ids of a call; the rows that the ids take grow by 20.
    assert memory(known) <= before + 16 * 4096 + 25 * 3000


# The hash.


def reference_hash(low: int, high: int) -> int:
    """The definition, in integers without bounds."""
    summand, a, b, c, d = map(int, seen._secret())
    return ((low // 2**32 + a) * (low + b) + (high // 2**32 + c) * (high + d) + summand) % 2**64


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), min_size=1, max_size=5))
def test_hashes_are_what_they_are_defined_to_be(ids: list[Id]) -> None:
    low, high = as_ids(ids).T
    assert seen._hashes(low, high).tolist() == [reference_hash(*id_) for id_ in ids]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((0, 0), (1, 0)),
        ((0, 0), (2**31, 0)),
        ((0, 0), (0, 1)),
        ((0, 0), (2**32, 0)),
        ((0, 0), (0, 2**63)),
        ((5, 5), (2**63 + 5, 2**63 + 5)),
        ((1, 2), (2, 1)),
        ((2**64 - 1, 0), (0, 2**64 - 1)),
        ((2**32, 1), (1, 2**32)),
    ],
)
def test_hashes_of_any_two_ids_are_uniform_and_independent(monkeypatch: pytest.MonkeyPatch, one: Id, other: Id) -> None:
    """Over the factors, each of the 256 pairs of 4 upper bits is as likely: a chi-square test at 5 sigma."""
    draws = 2**17
    secrets = np.random.default_rng(3).integers(0, 2**64, (5, draws), dtype=np.uint64)
    monkeypatch.setattr(seen, "_secret", lambda: secrets)

    def upper_bits(id_: Id) -> npt.NDArray[np.uint64]:
        low, high = (np.full(draws, word, dtype=np.uint64) for word in id_)
        return seen._hashes(low, high) >> np.uint64(60)

    cells = np.bincount((16 * upper_bits(one) + upper_bits(other)).astype(np.intp), minlength=256)
    chi_square = ((cells - draws / 256) ** 2 / (draws / 256)).sum()
    assert abs(chi_square - 255) < 5 * np.sqrt(2 * 255)


def chains(known: SeenIds) -> list[list[int]]:
    """The rows in each slot."""
    found = []
    for head in known._heads.tolist():
        rows = [head] if head else []
        while rows and known._before[rows[-1]]:
            rows.append(int(known._before[rows[-1]]))
        found.append(rows)
    return found


def test_each_id_is_once_in_the_chain_of_the_upper_bits_of_its_hash() -> None:
    known = SeenIds()
    for part in np.array_split(np.repeat(random_ids(1000), 2, axis=0), 7):
        known.add(part)
    slots = chains(known)
    assert sorted(row for rows in slots for row in rows) == list(range(1, 1001))
    for slot, rows in enumerate(slots):
        for row in rows:
            assert slot == reference_hash(int(known._low[row]), int(known._high[row])) * len(slots) // 2**64


@pytest.mark.parametrize("stride", [1, 2**16, 2**31, 2**32, 2**48])
@pytest.mark.parametrize("word", [0, 1])
def test_chains_are_as_short_as_of_a_strongly_universal_hash(
    monkeypatch: pytest.MonkeyPatch, stride: int, word: int
) -> None:
    """Over the factors, two of n ids share one of m slots with probability 1/m; here of ids in a row."""
    n, rng = 500, np.random.default_rng(4)
    ids = np.zeros((n, 2), dtype=np.uint64)
    ids[:, word] = np.arange(n, dtype=np.uint64) * np.uint64(stride)
    pairs = []
    for _ in range(40):
        secrets = rng.integers(0, 2**64, 5, dtype=np.uint64)
        monkeypatch.setattr(seen, "_secret", partial(np.copy, secrets))
        known = SeenIds()
        for part in np.array_split(ids, 3):
            known.add(part)
        lengths = list(map(len, chains(known)))
        pairs.append(sum(length * (length - 1) / 2 for length in lengths))
    z = (np.mean(pairs) - n * (n - 1) / 2 / len(lengths)) / (np.std(pairs, ddof=1) / np.sqrt(len(pairs)))
    assert z < 4
