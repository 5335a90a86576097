"""Entries of a shard's bags: they round-trip, and those that have expired are freed."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sized

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transforms.bags import Bag, Hash, held
from uldp.collector.seen import Lot
from uldp.schemas.arrays import Words
from uldp.transforms.remembered import Remembered, forget_expired, pack_ids, unexpired, unpack_ids


def as_columns(hashes: Iterable[Hash], lot: Lot) -> list[Words]:
    return list(np.array(list(hashes), dtype=np.uint64).reshape(-1, 2).T[: lot.columns].copy())


def as_hashes(columns: Iterable[Words]) -> list[Hash]:
    return list(zip(*(words.tolist() for words in columns), strict=True))


WORDS = st.integers(0, 2**64 - 1)
LOTS = st.builds(Lot, st.integers(0, 5), st.booleans())
ENTRIES = st.lists(st.tuples(LOTS, st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=25)), max_size=6)


@given(st.integers(-(2**63), 2**63 - 1), st.booleans(), st.lists(st.tuples(WORDS, WORDS), max_size=5))
def test_packed_ids_round_trip_in_8_bytes_or_16_if_exact(until: int, exact: bool, hashes: list[Hash]) -> None:
    lot = Lot(until, exact)
    entry = pack_ids(lot, as_columns(hashes, lot))
    assert len(entry) == 9 + (16 if exact else 8) * len(hashes)
    read_lot, read = unpack_ids(entry)
    assert (read_lot, as_hashes(read)) == (lot, [each[: lot.columns] for each in hashes])


@given(ENTRIES, st.integers(0, 5))
def test_what_has_not_expired_is_kept_by_lot(entries: list[tuple[Lot, list[Hash]]], now: int) -> None:
    kept = unexpired((pack_ids(lot, as_columns(hashes, lot)) for lot, hashes in entries), now)
    assert list(kept) == sorted({lot for lot, _ in entries if lot.until > now})
    for lot, columns in kept.items():
        expected = [each[: lot.columns] for of, hashes in entries if of == lot for each in hashes]
        assert as_hashes(columns) == expected


def sizes(by_expiry: Mapping[int, Sized]) -> Counter[int]:
    return Counter({until: len(hashes) for until, hashes in by_expiry.items()})


@given(ENTRIES, st.integers(0, 5))
def test_a_bag_holds_few_expired_ids_and_all_others(entries: list[tuple[Lot, list[Hash]]], now: int) -> None:
    bag = Bag()
    for lot, hashes in entries:
        bag.add(pack_ids(lot, as_columns(hashes, lot)))
    before = held(bag)
    left = forget_expired(bag, sizes(before), now)
    after = held(bag)
    assert left == sizes(after)
    assert [sorted(hashes) for until, hashes in sorted(after.items()) if until > now] == [
        sorted(hashes) for until, hashes in sorted(before.items()) if until > now
    ]
    expired = sum(len(hashes) for until, hashes in after.items() if until <= now)
    assert expired == 0 or expired * 16 < left.total()
    if all(until <= now for until in before):
        assert (left.total(), bag.reads) == (0, 0)


@pytest.mark.parametrize(("exact", "bytes_an_id"), [(False, 8), (True, 16)])
def test_state_takes_few_bytes_an_id_and_never_the_id(exact: bool, bytes_an_id: int) -> None:
    """An element of many thousand ids is one entry for each expiry."""
    bags, ids = [Bag() for _ in range(8)], np.random.default_rng(1).integers(0, 2**64, (30_000, 2), dtype=np.uint64)
    remembered = Remembered(bytes(16))
    remembered.write(bags, remembered.ids.add(ids, np.arange(30_000) % 2, exact).lots)
    entries = [entry for bag in bags for entry in bag.entries]
    assert sum(map(len, entries)) == 2 * 9 + bytes_an_id * 30_000
    written = np.concatenate([words for entry in entries for words in unpack_ids(entry)[1]])
    assert not np.isin(ids, written).any()
    assert remembered.expiring == {0: 15_000, 1: 15_000}
