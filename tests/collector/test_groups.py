"""Groups of collections that are counted alike."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from uldp.collector.collections import BLOCK_CELLS, YEAR_9000
from uldp.collector.partial import NUMBERS
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import milliseconds
from uldp.schemas.specs.window import MAX_WINDOW


def many(n: int, size: int = 5, **overrides: object) -> list[CollectionSpec]:
    return [build.spec(collection=f"c{number}", domain={"size": size}, **overrides) for number in range(n)]


#: Two groups of two, and others that are not counted as these are.
SPECS = SharedSpecs([*many(128), build.spec(collection="rr", domain={"size": 6}), *many(2, version=2, retired=True)])


@given(st.sampled_from(list(SPECS)), st.integers(-milliseconds(MAX_WINDOW), YEAR_9000))
def test_a_slot_is_that_of_one_slice(spec: CollectionSpec, start: int) -> None:
    group, offset = SPECS.groups.places[spec.key]
    served, found = SPECS.groups.find(group, start + offset)
    assert (served.spec.key, found) == (spec.key, start)


def test_groups_have_collections_that_are_counted_alike() -> None:
    groups = SPECS.groups.members
    assert sum(map(len, groups.values())) == len(SPECS.served)
    assert [len(members) for members in groups.values()] == [2] * 64 + [1] * 3
    for first, members in groups.items():
        assert members[0].spec.key == first
        assert {(each.rules, each.protocol) for each in members} == {(members[0].rules, members[0].protocol)}


def test_a_group_is_the_same_in_each_process() -> None:
    copy = SharedSpecs(pickle.loads(pickle.dumps(list(SPECS))))
    assert copy.groups.places == SPECS.groups.places


@pytest.mark.parametrize(("n", "size"), [(63, 5), (127, 5), (640, 5), (640, 2000), (640, 60_000)])
def test_groups_leave_blocks_for_workers_and_bound_them(n: int, size: int) -> None:
    shared = SharedSpecs(many(n, size))
    groups = shared.groups.members
    assert len(groups) >= min(n, 64)
    for members in groups.values():
        slices = members[0].span_size // members[0].slice_size
        assert len(members) == 1 or len(members) * slices * (size + NUMBERS) <= BLOCK_CELLS


def test_sliding_windows_have_no_groups() -> None:
    sliding = SharedSpecs(many(200, window={"size": "1h", "period": "5m"}))
    assert {len(members) for members in sliding.groups.members.values()} == {1}
