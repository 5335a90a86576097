"""A keyed hash of report ids: a device that does not know the key cannot aim ids at one value of the hash."""

import functools
import hashlib

import numpy as np

from uldp.schemas.arrays import Words
from uldp.schemas.errors import RequestError

#: Parts of the ids of a job on a cluster: as many workers can remove copies at the same time.
DEFAULT_SHARDS = 16

#: Bytes of a key of ``hash_ids``.
KEY_BYTES = 40

#: Bytes of the secret of ``hash_key``, and words of its key.
SECRET_BYTES, _KEY_WORDS = 16, 8

_HALF, _UPPER = np.uint64(32), np.uint64(0xFFFFFFFF_00000000)


def key_of(secret: int) -> Words:
    """Expand a secret into a key of ``hash_ids``; ValueError, without it, if it has more than 128 bits."""
    if not isinstance(secret, int) or not 0 <= secret < 1 << 128:
        raise RequestError("the shard key must be an integer of 0 or more, and less than 2**128")
    return np.frombuffer(hashlib.shake_256(secret.to_bytes(16, "little")).digest(KEY_BYTES), np.uint64)


def hash_ids(key: Words, low: Words, high: Words) -> Words:
    """Hash ids, given as their two words; the upper 32 bits of the hashes are strongly universal, shape (n,).

    If a device chooses two ids without knowing the key, the upper b <= 32 bits of their hashes are equal with
    probability 2^-b. The hash is the family Multilinear-HM (Lemire and Kaser, "Strongly universal string hashing is
    fast", The Computer Journal 2014) on the four halves of an id, with one difference: the second sums add a whole
    word instead of its lower half. The proof still holds. If two ids differ in the upper half of a word, the
    difference of their hashes is the difference of these halves times one factor, plus a term that does not depend on
    this factor. If the ids differ only in the lower half, the same holds for the other factor. A uniform factor times
    a difference of less than 2^32 is uniform in its upper 32 bits, and the summand is independent of this product.

    So n chosen ids that fall into k equal parts of the hashes' range fill each part about alike. By Chebyshev's
    inequality, at most k^2 / n of all keys leave a part empty, or fill it with twice its share. The hash is no message
    authentication code: whoever sees the hashes of some ids can solve for the key, so no output may show them.
    The key is a uniform summand and four uniform factors.
    """
    summand, *factors = key
    hashes = low >> _HALF
    hashes += factors[0]
    hashes *= low + factors[1]
    products = high >> _HALF
    products += factors[2]
    products *= high + factors[3]
    hashes += products
    hashes += summand
    return hashes


@functools.lru_cache(maxsize=4096)
def hash_key(secret: bytes) -> Words:
    """Expand 16 secret bytes into a key of ``hash_words``: shape (8,)."""
    return np.frombuffer(hashlib.shake_256(b"words" + secret).digest(8 * _KEY_WORDS), np.uint64)


def hash_words(key: Words, low: Words, high: Words) -> tuple[Words, Words]:
    """Hash ids, given as their two words, to two words: the first is a hash of 64 bits, and both together name the id.

    The words are two rounds of a Feistel network, ``second = low ^ f(high)`` and ``first = high ^ g(second)``, so ids
    that differ never agree in both. Here f and each half of g are the upper half of a product as in ``hash_ids``, and
    strongly universal. So if a device chooses two ids without knowing the key, their first words are equal with
    probability 2^-64 at the most: if the second words differ, g must differ by exactly ``high ^ high``, and otherwise
    the first words differ as the ids do.

    As with ``hash_ids``, no output may show hashes, and the key, shape (8,), must be secret and uniform.
    """
    a, b, *of_g = key
    second = _product(a, b, high)
    second ^= low
    first = _product(of_g[0], of_g[1], second)
    first += of_g[2]
    first &= _UPPER
    lower = _product(of_g[3], of_g[4], second)
    lower += of_g[5]
    lower >>= _HALF
    first |= lower
    first ^= high
    return first, second


def _product(a: np.uint64, b: np.uint64, words: Words) -> Words:
    """Return (a + the upper half of a word) times (b + the word)."""
    product = words >> _HALF
    product += a
    product *= words + b
    return product


@functools.cache
def mask_of(collection: str) -> Words:
    """Return two words that make the ids of a collection differ from those of every other.

    Where one set holds the ids of several collections, it holds id XOR mask. Then a report of one collection passes for
    a copy of a report of another only if the ids differ by exactly the difference of two hashes of 128 bits. For ids
    that are not made for that, this has the probability that two random ids are equal. A device can make such a pair
    only if it knows the id of a report, and that report it could repeat in the same collection as well.
    """
    return np.frombuffer(hashlib.sha256(collection.encode()).digest()[:16], np.uint64)


def spread(hashes: Words, parts: int) -> Words:
    """Map hashes to 0, ..., parts - 1 by their upper 32 bits, by multiplication (Lemire 2019), equally up to 2^-32."""
    return ((hashes >> _HALF) * np.uint64(parts)) >> _HALF
