"""The functions of docs/client that several mechanisms use: hashes, strings, and points of a finite geometry."""

from collections.abc import Sequence
from hashlib import sha256


def symbol_of(text: str, longest: int) -> int:
    filled = text.encode().ljust(longest, b"\xff")
    assert len(filled) <= longest
    return int.from_bytes(sha256(filled).digest()[:6], "little")


def hash_of(seed: int, z: int) -> int:
    word = ((seed << 32) + (z + 1) * 0x9E3779B97F4A7C15) % 2**64
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
    return word ^ word >> 31


def bucket_of(seed: int, z: int, buckets: int) -> int:
    return hash_of(seed, z) % 2**32 * buckets >> 32


def positions(cohort: int, z: int, hashes: int, size: int) -> list[int]:
    return [bucket_of(cohort * hashes + j, z, size) for j in range(hashes)]


def digits(vector: int, g: int, m: int) -> list[int]:
    return [vector // g**k % g for k in reversed(range(m))]


def vector_of(point: int, g: int) -> int:
    power = 1
    while point >= power:
        point, power = point - power, power * g
    return power + point


def point_of(y: Sequence[int], g: int) -> int:
    vector: int = sum(digit * g**k for k, digit in enumerate(reversed(y)))
    power: int = g ** (len(y) - 1 - next(place for place, digit in enumerate(y) if digit))
    return vector - power + (power - 1) // (g - 1)
