"""The keyed hash that chooses the shard of an id."""

import numpy as np
import pytest

from tests import build
from uldp.collector.columns import by_shard
from uldp.collector.hashing import hash_ids, hash_key, hash_words, key_of, mask_of, spread
from uldp.schemas.arrays import Words

N, SHARDS = 16_000, 16


def words(first: int, step: int) -> Words:
    """N multiples of a step."""
    return np.uint64(first) + np.uint64(step) * np.arange(N, dtype=np.uint64)


ZEROS = np.zeros(N, dtype=np.uint64)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (words(0, SHARDS), ZEROS),
        (words(5, 1 << 40), ZEROS),
        (ZEROS, words(0, SHARDS)),
        (ZEROS, words(0, 1 << 32)),
        (words(0, 1 << 48), words(0, 1 << 48)),
    ],
)
@pytest.mark.parametrize("secret", [1, 2**127 + 5])
def test_ids_that_a_device_has_chosen_fall_into_all_shards(low: Words, high: Words, secret: int) -> None:
    """A device that chooses multiples of the number of shards filled one shard, and left the others empty."""
    columns = build.columns(np.stack([low, high], axis=1))
    sizes = {shard: sum(map(len, parts)) for shard, parts in by_shard([columns], SHARDS, key_of(secret))}
    # By Chebyshev's inequality, at most one key in 60 leaves a shard empty or twice as large. These keys do not.
    assert set(sizes) == set(range(SHARDS))
    assert max(sizes.values()) < 2 * N / SHARDS


def test_the_shard_of_an_id_never_changes() -> None:
    """The state of running jobs depends on it: if this fails, raise STATE in uldp.pipelines.jobs.identity."""
    low, high = (np.array(column, dtype=np.uint64) for column in ([0, 1, 2**64 - 1, 2**32], [0, 7, 2**64 - 1, 2**63]))
    assert [int(word) for word in hash_ids(key_of(0), low, high)] == [
        15152560750685736085,
        348634780316767387,
        4713280441795526170,
        6916795566110050910,
    ]
    assert [int(word) for word in hash_ids(key_of(2**128 - 1), low, high)] == [
        14618797807665496673,
        16610714908518176512,
        3020821830418522589,
        18019814534411941340,
    ]
    assert spread(hash_ids(key_of(0), low, high), SHARDS).tolist() == [13, 0, 4, 5]


def test_a_reference_in_whole_numbers_agrees() -> None:
    summand, a, b, c, d = map(int, key_of(3))
    low, high = words(2**63 + 11, 2**50 + 1), words(7, 2**45 - 1)
    half, whole = 1 << 32, 1 << 64
    expected = [
        (summand + (x // half + a) * (x + b) + (y // half + c) * (y + d)) % whole
        for x, y in zip(low.tolist(), high.tolist(), strict=True)
    ]
    assert hash_ids(key_of(3), low, high).tolist() == expected
    assert spread(np.array(expected, dtype=np.uint64), 7).tolist() == [7 * (hashed >> 32) >> 32 for hashed in expected]


@pytest.mark.parametrize("secret", [-1, 1 << 128])
def test_a_key_has_128_bits_and_an_error_does_not_show_it(secret: int) -> None:
    with pytest.raises(ValueError, match=r"^the shard key must be an integer of 0 or more, and less than 2\*\*128$"):
        key_of(secret)


def test_masks_of_collections_differ_and_never_change() -> None:
    """The state of running jobs depends on them: if this fails, raise STATE in uldp.pipelines.jobs.identity."""
    masks = [tuple(map(int, mask_of(name))) for name in ("a", "b", "check-ins")]
    # From SHA-256 of the name, computed with sha256sum: the first 16 bytes, as two little-endian words.
    assert masks == [
        (0xCABD1BCA128197CA, 0x4DDC239AB331C2FA),
        (0x4A59390016E8233E, 0x34B1E164654F8933),
        (0x0AECD8F9E811A84E, 0x96777BD125B75BC8),
    ]


# The words that are kept of an id.


def test_both_words_name_the_id() -> None:
    """The network is run backwards, in whole numbers."""
    a, b, *of_g = map(int, hash_key(b"0123456789abcdef"))
    half, whole = 1 << 32, 1 << 64
    low, high = words(2**63 + 11, 2**50 + 1), words(7, 2**45 - 1)
    for first, second, of_low, of_high in zip(
        *(part.tolist() for part in hash_words(hash_key(b"0123456789abcdef"), low, high)),
        low.tolist(),
        high.tolist(),
        strict=True,
    ):
        upper, lower = (((second // half + c) * (second + d) + e) % whole // half for c, d, e in (of_g[:3], of_g[3:]))
        assert first ^ (upper * half + lower) == of_high
        assert second ^ ((of_high // half + a) * (of_high + b)) % whole == of_low


def test_hashes_never_change() -> None:
    """The state of running jobs depends on them: if this fails, raise STATE in uldp.pipelines.jobs.identity."""
    low, high = (np.array(column, dtype=np.uint64) for column in ([0, 2**64 - 1], [7, 2**63]))
    first, second = hash_words(hash_key(bytes(16)), low, high)
    assert first.tolist() == [15906683096200312507, 4224417910727841823]
    assert second.tolist() == [17673548933651679148, 16954097842484542919]
