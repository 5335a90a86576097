"""Unary encoding: the form of payloads, and the sums of packed bits."""

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding
from uldp.mechanisms.randomizers.packed_bits import count_bits, tally_bits
from uldp.schemas.arrays import Mask


def mask(k: int, v: int) -> Mask:
    """The last v of k symbols are sensitive."""
    return np.arange(k) >= k - v


def rows_in(layout: str, bits: Mask) -> npt.NDArray[np.uint8]:
    """Pack rows of bits, with arbitrary padding, in one of the ways in which they may lie in memory."""
    packed = np.packbits(bits, axis=1)
    n, width = packed.shape
    packed[:, -1] |= ~np.packbits(np.ones(bits.shape[1], dtype=np.bool_))[-1] & 0b01011010
    match layout:
        case "odd offset, read-only":
            return np.frombuffer(b"\xff" + packed.tobytes(), np.uint8, offset=1).reshape(n, width)
        case "every other row":
            return np.repeat(packed, 2, axis=0)[::2]
        case "every other byte":
            return np.repeat(packed, 2, axis=1)[:, ::2]
        case "columns first":
            return np.asfortranarray(packed)
        case "backwards":
            return packed[::-1, ::-1].copy()[::-1, ::-1]
    return packed


LAYOUTS = ["plain", "odd offset, read-only", "every other row", "every other byte", "columns first", "backwards"]
#: No rows, none beside the groups of eight, where sums in a byte end, where trees of 3 and more levels begin.
ROWS = st.sampled_from([0, 1, 7, 8, 9, 254, 255, 256, 257, 511, 512, 1023, 2049, 4096]) | st.integers(0, 5000)
#: Widths about one and two words of eight bytes, and others.
SIZES = st.sampled_from([1, 8, 9, 50, 56, 57, 64, 65, 72, 120, 121, 128, 129]) | st.integers(1, 300)


@given(
    st.sampled_from(LAYOUTS),
    ROWS,
    st.integers(1, 90),
    st.floats(0, 1),
    st.integers(0, 2**32),
    st.lists(ROWS, max_size=4),
)
def test_count_bits_sums_columns(layout: str, n: int, size: int, density: float, seed: int, cuts: list[int]) -> None:
    bits = np.random.default_rng(seed).random((n, size)) < density
    parts = np.split(rows_in(layout, bits), sorted(min(cut, n) for cut in cuts))
    counts = count_bits(parts, size)
    assert counts.dtype == np.int64
    assert counts.tolist() == bits.sum(axis=0).tolist()


@pytest.mark.parametrize("size", [1, 11, 625, 20_000])
def test_count_bits_goes_on_from_block_to_block(size: int) -> None:
    # Sums of more than 2 MB of rows, and so of several blocks; the last column is set in each row, the first in none.
    n = 2_500_000 // math.ceil(size / 8) + 3
    packed = np.random.default_rng(size).integers(0, 256, (n, math.ceil(size / 8)), dtype=np.uint8)
    packed[:, 0] &= 0x7F
    packed[:, (size - 1) // 8] |= 0x80 >> (size - 1) % 8
    expected = np.zeros(size, dtype=np.int64)
    for row in range(0, n, 200):
        expected += np.unpackbits(packed[row : row + 200], axis=1, count=size).sum(axis=0, dtype=np.int64)
    assert count_bits([packed], size).tolist() == expected.tolist()


@pytest.mark.parametrize("n", [254, 255, 256, 510, 511, 4095, 16_383, 16_384, 100_003, 1_100_003])
def test_count_bits_holds_full_columns(n: int) -> None:
    # Every weight of every level carries, and the second level too where a plane has 256 rows and more.
    assert count_bits([np.full((n, 2), 255, dtype=np.uint8)], 11).tolist() == [n] * 11


@pytest.mark.parametrize("size", [1, 11, 100])
@pytest.mark.parametrize(("n", "groups"), [(0, 3), (1, 4), (500, 300), (20_000, 7), (10_000, 700)])
def test_tally_bits_counts_each_group_alone(n: int, groups: int, size: int) -> None:
    rng = np.random.default_rng([n, size])
    bits = rng.random((n, size)) < np.where(np.arange(size) % 2, 0.9, 0.2)
    of_group = np.minimum(rng.geometric(min(3 / groups, 1), n), groups) - 1  # some have many rows, and some none
    expected = np.zeros((groups, size), dtype=np.int64)
    np.add.at(expected, of_group, bits)
    packed = np.packbits(bits, axis=1)
    found = tally_bits(np.split(packed, [n // 3]), of_group, groups, size)
    np.testing.assert_array_equal(np.array(found), expected)


@given(st.sampled_from(LAYOUTS), st.integers(0, 300), SIZES, st.floats(0, 1), st.integers(0, 2**32))
def test_the_form_is_zero_padding_and_no_more_than_one_non_sensitive_bit(
    layout: str, n: int, k: int, density: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    sensitive = (rng.random(k) < 0.3) | (np.arange(k) == rng.integers(k))
    # Bits of Z_N are rare at first and get as dense as those of Z_S, so that both verdicts occur.
    bits = rng.random((n, k)) < np.where(sensitive, density, density * np.linspace(0, 1, n)[:, np.newaxis] ** 4)
    packed = rows_in(layout, bits)
    zero_padded = np.packbits(bits, axis=1)
    mechanism = UnaryEncoding(sensitive, 1.0, 0.5)
    expected = bits[:, ~sensitive].sum(axis=1) <= 1
    form, totals = mechanism.form_and_totals(zero_padded)
    assert (form == expected).all()
    assert totals.tolist() == bits.sum(axis=1).tolist()
    assert (mechanism.form_and_totals(packed)[0] == expected & (packed == zero_padded).all(axis=1)).all()


def test_no_count_of_bits_is_too_many_to_refuse() -> None:
    # 256 and 65,536 bits are 0 in a byte and in two; a payload of each number of bits of Z_N.
    k = 70_000
    numbers = [0, 1, 2, 255, 256, 257, 511, 512, 513, 65_535, 65_536, 65_537]
    payloads = np.packbits(np.arange(k) >= k - np.array(numbers)[:, np.newaxis], axis=1)
    mechanism = UnaryEncoding(np.arange(k) == 0, 1.0, 0.5)
    assert mechanism.form_and_totals(payloads)[0].tolist() == [True, True] + [False] * 10
    assert mechanism.form_and_totals(payloads)[1].tolist() == numbers


def test_rows_are_judged_in_their_order_from_block_to_block() -> None:
    n, k = 300_000, 64
    totals = np.random.default_rng(8).integers(0, k + 1, n)
    payloads = np.packbits(np.arange(k) >= k - np.arange(k + 1)[:, np.newaxis], axis=1)[totals]
    mechanism = UnaryEncoding(mask(k, 5), 1.0, 0.5)
    assert (mechanism.form_and_totals(payloads)[1] == totals).all()
    assert (mechanism.possible(payloads) == (totals <= 6)).all()


@pytest.mark.parametrize(("k", "v"), [(6, 2), (6, 6), (8, 3), (9, 9), (9, 4), (16, 15), (11, 1)])
def test_possible_agrees_with_the_definition_on_every_payload(k: int, v: int) -> None:
    width = math.ceil(k / 8)
    payloads = np.array(list(itertools.product(range(256), repeat=width)), dtype=np.uint8)
    bits = np.unpackbits(payloads, axis=1)
    expected = (bits[:, k:].sum(axis=1) == 0) & (bits[:, :k][:, ~mask(k, v)].sum(axis=1) <= 1)
    assert (UnaryEncoding(mask(k, v), 1.0, 0.5).possible(payloads) == expected).all()
