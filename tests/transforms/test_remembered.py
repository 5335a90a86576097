"""Entries of a shard's bags: they round-trip, and those that have expired are freed."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sized

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.transforms.bags import Bag, Id, held
from uldp.schemas.arrays import ReportIds
from uldp.transforms.remembered import forget_expired, pack_ids, unexpired, unpack_ids


def as_ids(ids: Iterable[Id]) -> ReportIds:
    return np.array(list(ids), dtype=np.uint64).reshape(-1, 2)


#: Words of which few bits differ, and the differences are where a hash by multiplication is weak.
WORDS = st.sampled_from([0, 1, 2, 2**31, 2**32, 2**62, 2**63, 2**63 + 2**31, 2**64 - 1])
IDS = st.lists(st.tuples(WORDS, WORDS), max_size=25)


@given(st.integers(-(2**63), 2**63 - 1), st.lists(st.tuples(*[st.integers(0, 2**64 - 1)] * 2), max_size=5))
def test_packed_ids_round_trip(expiry: int, ids: list[Id]) -> None:
    entry = pack_ids(expiry, as_ids(ids))
    assert len(entry) == 8 + 16 * len(ids)
    read_expiry, read_ids = unpack_ids(entry)
    assert (read_expiry, list(map(tuple, read_ids.tolist()))) == (expiry, ids)


@given(st.lists(st.tuples(st.integers(0, 5), IDS), max_size=6), st.integers(0, 5))
def test_what_has_not_expired_is_kept_by_expiry(entries: list[tuple[int, list[Id]]], now: int) -> None:
    kept = unexpired((pack_ids(expiry, as_ids(ids)) for expiry, ids in entries), now)
    assert list(kept) == sorted({expiry for expiry, _ in entries if expiry > now})
    for expiry, ids in kept.items():
        expected = [id_ for until, ids_ in entries if until == expiry for id_ in ids_]
        assert list(map(tuple, ids.tolist())) == expected


def sizes(by_expiry: Mapping[int, Sized]) -> Counter[int]:
    return Counter({expiry: len(ids) for expiry, ids in by_expiry.items()})


SOME_IDS = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=25)


@given(st.lists(st.tuples(st.integers(0, 5), SOME_IDS), max_size=6), st.integers(0, 5))
def test_a_bag_holds_few_expired_ids_and_all_others(entries: list[tuple[int, list[Id]]], now: int) -> None:
    bag = Bag()
    for expiry, ids in entries:
        bag.add(pack_ids(expiry, as_ids(ids)))
    before = held(bag)
    left = forget_expired(bag, sizes(before), now)
    after = held(bag)
    assert left == sizes(after)
    assert [ids for expiry, ids in sorted(after.items()) if expiry > now] == [
        ids for expiry, ids in sorted(before.items()) if expiry > now
    ]
    expired = sum(len(ids) for expiry, ids in after.items() if expiry <= now)
    assert expired == 0 or expired * 16 < left.total()
    if all(expiry <= now for expiry in before):
        assert (left.total(), bag.reads) == (0, 0)
