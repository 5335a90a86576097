"""Sets of ids that a merge compares."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from uldp.pipelines.merge.ids import ID, Ids

#: Few words, so that many ids share one: devices choose ids.
WORDS = st.sampled_from([0, 1, 1 << 63, (1 << 64) - 1])
SETS = st.frozensets(st.tuples(WORDS, WORDS))


def packed(ids: list[tuple[int, int]]) -> bytes:
    return np.array(ids, dtype=np.uint64).tobytes()


def of(ids: Ids) -> list[tuple[int, int]]:
    return list(zip(ids.first.tolist(), ids.second.tolist(), strict=True))


@given(st.lists(st.lists(st.tuples(WORDS, WORDS))))
def test_ids_of_files_are_sorted_and_each_once(parts: list[list[tuple[int, int]]]) -> None:
    ids = Ids.of(map(packed, parts))
    assert of(ids) == sorted({each for part in parts for each in part})
    assert len(ids) * ID == ids.first.nbytes + ids.second.nbytes


@given(SETS, SETS)
def test_sets_of_ids_are_sets(one: frozenset[tuple[int, int]], other: frozenset[tuple[int, int]]) -> None:
    a, b = (Ids.of([packed(sorted(each))]) for each in (one, other))
    assert of(Ids.union([a, b])) == sorted(one | other)
    assert a.in_common(b) == len(one & other)
    assert of(Ids.union([a, b]).without(b)) == sorted(one - other)
    assert not (one and other) or a.has_first_of(b) == (min(one) == min(other))
