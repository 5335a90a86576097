"""Ids of several collections in one set, and the time of their expiry."""

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR, START
from uldp.collector.collections import serve
from uldp.collector.columns import MixedColumns
from uldp.collector.seen import FILL, are_exact, bag_to_fill, expiries, forget_at, masked_ids

SERVED = serve(
    [
        build.spec(collection="a", window={"size": "1h"}),
        build.spec(collection="b", window={"size": "1h"}),
        build.spec(collection="c", window={"size": "1h", "allowed_lateness": "1h"}),
    ]
)
#: Id 1 of each collection in the first hour, and id 2 in the second.
PARTS = MixedColumns(tuple(build.columns([(1, 0), (2, 0)], [START, START + HOUR], key=key) for key in SERVED))


def test_equal_ids_of_different_collections_differ() -> None:
    ids = masked_ids(PARTS)
    assert len(set(map(tuple, ids.tolist()))) == 6
    np.testing.assert_array_equal(ids[::2] ^ ids[1::2], [[3, 0]] * 3)


def test_versions_of_a_collection_share_their_ids() -> None:
    parts = MixedColumns(tuple(build.columns([(1, 0)], key=("a", version)) for version in (1, 2)))
    assert len(set(map(tuple, masked_ids(parts).tolist()))) == 1


def test_ids_expire_when_their_last_window_closes() -> None:
    # Rows of a, b and c: an hour of window, and for c an hour of lateness.
    closes = [START + hours * HOUR for hours in (1, 2, 1, 2, 2, 3)]
    assert expiries(SERVED, PARTS).tolist() == closes
    assert expiries(SERVED, MixedColumns(PARTS.parts[:2])).tolist() == closes[:4]
    assert PARTS.parts[0].slices.tolist() == [START, START + HOUR]


@pytest.mark.parametrize("lateness", ["0s", "90m", "3h", "24h", "1000h"])
@pytest.mark.parametrize("period", [None, "10m"])
def test_ids_expire_at_few_times_and_never_too_early(lateness: str, period: str | None) -> None:
    window = {"size": "1h", "allowed_lateness": lateness} | ({"period": period} if period else {})
    (of,) = serve([build.spec(window=window)]).values()
    slices = START // HOUR * HOUR + of.slice_size * np.arange(5000)
    over = of.forgotten_at(slices) - slices - of.remembered_for
    # Never too early, and late by less than a quarter, rounded up to slices.
    assert over.min() == 0
    assert over.max() < -(-of.remembered_for // (4 * of.slice_size)) * of.slice_size
    for now in slices[-1000:].tolist():
        remembered = slices[(slices <= now) & (now < of.forgotten_at(slices))]
        assert len(np.unique(of.forgotten_at(remembered))) <= 5


def test_all_bits_are_kept_of_the_ids_of_collections_that_ask_for_it() -> None:
    served = serve([build.spec(collection=name, dedup=dedup) for name, dedup in (("a", "hashed"), ("b", "exact"))])
    of_a, of_b = (build.columns([(1, 0)] * n, key=key) for key, n in zip(served, (2, 3), strict=True))
    assert are_exact(served, MixedColumns((of_a,))) is False
    assert are_exact(served, MixedColumns((of_b, of_b))) is True
    found = are_exact(served, MixedColumns((of_a, of_b)))
    assert np.array(found).tolist() == [False, False, True, True, True]


@pytest.mark.parametrize(
    ("expiring", "at"),
    [
        ({7: 1}, 7),
        ({9: 5, 7: 1}, 7),  # a sixth
        ({7: 1, 8: 15}, 7),
        ({7: 1, 8: 1, 9: 15}, 8),  # the first alone would be a seventeenth
        (dict.fromkeys(range(10), 1) | {1440: 1000}, 1440),
    ],
)
def test_ids_are_forgotten_when_a_sixteenth_of_them_has_expired(expiring: dict[int, int], at: int) -> None:
    assert forget_at(expiring) == at


@given(st.integers(1, 9), st.lists(st.integers(1, FILL // 2)))
def test_bags_differ_by_one_filling_at_the_most(bags: int, added: list[int]) -> None:
    sizes, filled = [0] * bags, []
    for ids in added:
        filled.append(bag_to_fill(sizes))
        sizes[filled[-1]] += ids
    assert max(sizes) - min(sizes) < 3 * FILL // 2 + 1
    # It leaves a bag when that is full, and not before.
    assert len(list(groupby(filled))) <= 1 + sum(added) // FILL
