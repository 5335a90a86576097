"""Strings and their prefixes: docs/client/strings.md."""

from hashlib import sha256
from math import ceil, exp
from secrets import randbelow

from examples.recipes.hashes import bucket_of


def symbol_of(text: str, longest: int) -> int:
    """Return the symbol of a string of at most ``longest`` bytes."""
    filled = text.encode().ljust(longest, b"\xff")
    assert len(filled) <= longest, "the string is too long"
    return int.from_bytes(sha256(filled).digest()[:6], "little")


def positions(cohort: int, z: int, hashes: int, size: int) -> list[int]:
    """Return the positions to which the functions of a cohort hash z."""
    return [bucket_of(cohort * hashes + j, z, size) for j in range(hashes)]


def cohort_olh(text: str, longest: int, epsilon: float, buckets: int, cohorts: int) -> int:
    """Report a string: a cohort, and a bucket."""
    cohort, shift = randbelow(cohorts), 1 + randbelow(buckets - 1)
    (own,) = positions(cohort, symbol_of(text, longest), 1, buckets)
    noisy = randbelow(2**53) < ceil(2**53 * (buckets - 1) / (exp(epsilon) + buckets - 1))
    return cohort * buckets + (own + noisy * shift) % buckets


def bloom(text: str, longest: int, epsilon: float, bits: int, hashes: int, cohorts: int) -> bytes:
    """Report a string: a cohort, and the bits of a Bloom filter."""
    theta = 1 / (1 + exp(-epsilon / hashes / 2))
    q = theta / ((1 - theta) * exp(epsilon / hashes) + theta)
    cohort = randbelow(cohorts)
    drawn = [randbelow(2**53) < ceil(2**53 * q) for _ in range(bits)]
    own = [randbelow(2**53) >= ceil(2**53 * (1 - theta)) for _ in range(hashes)]
    for position, bit in zip(positions(cohort, symbol_of(text, longest), hashes, bits), own, strict=True):
        drawn[position] = bit
    packed = int("".join("01"[bit] for bit in drawn), 2).to_bytes(bits // 8, "big")
    return cohort.to_bytes(2, "little") + packed


def spell(text: str, known: set[str]) -> list[str] | None:
    """Return the pieces of a string, or None if a character is no piece."""
    found = []
    while text:
        piece = next((text[:end] for end in range(len(text), 0, -1) if text[:end] in known), None)
        if piece is None:
            return None
        found.append(piece)
        text = text[len(piece) :]
    return found
