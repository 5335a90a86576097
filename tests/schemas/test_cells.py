"""The cells of a statistic as packed bytes: small, the same for the same cells, and bounded when they are read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uldp.schemas.statistic import MAX_CELLS, pack_cells, unpack_cells

LONGS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(LONGS | st.just(0), max_size=40))
def test_packed_cells_are_read_back(cells: list[int]) -> None:
    packed = pack_cells(np.array(cells, dtype=np.int64))
    assert unpack_cells(packed).tolist() == cells
    assert len(packed["values"]) + len(packed["indices"] or b"") <= 8 * len(cells)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_the_values_take_the_fewest_bytes_that_hold_them(bits: int) -> None:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    assert pack_cells(np.array([low, high]))["itemsize"] == bits // 8
    if bits < 64:
        assert (
            pack_cells(np.array([low - 1, 1]))["itemsize"] == pack_cells(np.array([high + 1]))["itemsize"] == bits // 4
        )


def test_dense_and_sparse_cells_are_little_endian() -> None:
    assert pack_cells(np.array([1, -2, 300])) == {
        "size": 3,
        "itemsize": 2,
        "indices": None,
        "values": b"\x01\x00\xfe\xff\x2c\x01",
    }
    assert pack_cells(np.eye(1, 100, 98, dtype=np.int64)[0]) == {
        "size": 100,
        "itemsize": 1,
        "indices": b"\x62\x00\x00\x00",
        "values": b"\x01",
    }


@pytest.mark.parametrize(("nonzero", "sparse"), [(0, True), (1, True), (19, True), (20, False), (100, False)])
def test_cells_are_sparse_where_that_is_smaller(nonzero: int, sparse: bool) -> None:
    cells = np.zeros(100, dtype=np.int64)
    cells[:nonzero] = 1
    assert (pack_cells(cells)["indices"] is not None) == sparse


def test_few_bytes_do_not_become_any_number_of_cells() -> None:
    packed = {"size": MAX_CELLS + 1, "itemsize": 1, "indices": b"", "values": b""}
    with pytest.raises(ValueError, match="33554433 cells of 1 bytes are impossible"):
        unpack_cells(packed)
