"""Columns of reports, and partial counts as a commutative monoid."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from uldp.collector.columns import ReportColumns, by_shard, concatenate, slices_of_many
from uldp.collector.hashing import key_of
from uldp.schemas.arrays import Payloads
from uldp.schemas.specs.collection import CollectionKey


def columns(
    ids: list[tuple[int, int]], payloads: Payloads | None = None, key: CollectionKey = ("c", 3)
) -> ReportColumns:
    """Reports whose slices, and unless given their symbols, are their positions."""
    positions = np.arange(len(ids))
    return build.columns(ids, positions * 1000, payloads, positions + 7, key)


def rows(part: ReportColumns) -> list[tuple[tuple[int, ...], int, int | list[int], int]]:
    columns = part.slices.tolist(), part.payloads.tolist(), part.signals.tolist()
    return list(zip(map(tuple, part.report_ids.tolist()), *columns, strict=True))


IDS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), max_size=30)


@pytest.mark.parametrize("chosen", [np.array([True, False, True]), np.array([2, 0])], ids=["mask", "indices"])
@pytest.mark.parametrize("payloads", [None, np.array([[1, 2], [3, 4], [5, 6]], dtype=np.uint8)], ids=["symbol", "bits"])
def test_take_keeps_the_fields_of_a_report_together(chosen: npt.NDArray[np.intp], payloads: Payloads | None) -> None:
    whole = columns([(10, 0), (11, 1), (12, 2)], payloads)
    taken = whole.take(chosen)
    assert (taken.collection, taken.version) == ("c", 3)
    positions = np.arange(3)[chosen].tolist()
    assert rows(taken) == [rows(whole)[position] for position in positions]
    assert taken.payloads.dtype == whole.payloads.dtype


@given(IDS, IDS, st.integers(1, 7) | st.just(300))
def test_shards_are_a_partition_in_which_copies_meet(
    ids: list[tuple[int, int]], more: list[tuple[int, int]], shards: int
) -> None:
    wholes = [columns(ids), columns(more, key=("d", 1))]
    shared = list(by_shard(wholes, shards, key_of(5)))
    assert len(dict(shared)) == len(shared)
    assert {shard for shard, _ in shared} <= set(range(shards))
    for whole in wholes:
        found = [part for _, mixed in shared for part in mixed if part.collection == whole.collection]
        assert all(len(part) and part.version == whole.version for part in found)
        assert sorted(row for part in found for row in rows(part)) == sorted(rows(whole))
        of_shards = [{tuple(id_) for id_ in part.report_ids.tolist()} for part in found]
        assert sum(map(len, of_shards)) == len({id_ for of_shard in of_shards for id_ in of_shard})


def test_a_shard_keeps_the_order_of_arrival() -> None:
    shards = dict(by_shard([columns([(number % 40, 0) for number in range(100)])], 2, key_of(5)))
    assert len(shards) == 2
    for [part] in shards.values():
        assert part.payloads.tolist() == sorted(part.payloads.tolist())


@given(IDS, st.integers(1, 4))
def test_concatenate_is_the_inverse_of_a_cut(ids: list[tuple[int, int]], pieces: int) -> None:
    whole = columns(ids)
    cut = [whole.take(part) for part in np.array_split(np.arange(len(ids)), pieces)]
    joined = concatenate(cut)
    assert (joined.collection, joined.version) == ("c", 3)
    assert rows(joined) == rows(whole)


@given(st.lists(st.lists(st.integers(0, 5) | st.integers(0, 10**6), min_size=1, max_size=9), min_size=1, max_size=5))
def test_slices_of_many_collections_are_numbered_as_those_of_each(hours: list[list[int]]) -> None:
    flat = np.array([3_600_000 * hour for each in hours for hour in each])
    of, starts, groups = slices_of_many(flat, list(map(len, hours)), 3_600_000)
    found = list(zip(of.tolist(), starts.tolist(), strict=True))
    assert found == [(number, 3_600_000 * hour) for number, each in enumerate(hours) for hour in sorted(set(each))]
    wanted = [(number, 3_600_000 * hour) for number, each in enumerate(hours) for hour in each]
    assert [found[group] for group in groups.tolist()] == wanted
