"""Hashes, points and rows: docs/client/hashes.md."""

from math import ceil, exp
from secrets import randbelow


def bucket_of(seed: int, z: int, buckets: int) -> int:
    """Return the bucket of symbol z: SplitMix64 on words of 64 bits, without sign."""
    word = ((seed << 32) + (z + 1) * 0x9E3779B97F4A7C15) % 2**64
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
    return (word ^ word >> 31) % 2**32 * buckets >> 32


def olh(z: int, epsilon: float, buckets: int) -> bytes:
    """Report value z: the seed and the bucket."""
    seed, shift = randbelow(2**32), 1 + randbelow(buckets - 1)
    noisy = randbelow(2**53) < ceil(2**53 * (buckets - 1) / (exp(epsilon) + buckets - 1))
    bucket = (bucket_of(seed, z, buckets) + noisy * shift) % buckets
    return seed.to_bytes(4, "little") + bucket.to_bytes(2, "little")


def hrr(z: int, epsilon: float, size: int) -> int:
    """Report value z: a row, and the bit of z in it."""
    row = randbelow(1 << (size - 1).bit_length())
    noisy = randbelow(2**53) < ceil(2**53 / (exp(epsilon) + 1))
    return 2 * row + ((row & z).bit_count() % 2 ^ noisy)


def digits(vector: int, g: int, m: int) -> list[int]:
    """Return the m digits of a vector in base g."""
    return [vector // g**k % g for k in reversed(range(m))]


def vector_of(point: int, g: int) -> int:
    """Return the vector of a point."""
    power = 1
    while point >= power:
        point, power = point - power, power * g
    return power + point


def point_of(y: list[int], g: int) -> int:
    """Return the point on the line of a vector, of digits whose first but 0 is 1."""
    vector: int = sum(digit * g**k for k, digit in enumerate(reversed(y)))
    power: int = g ** (len(y) - 1 - next(place for place, digit in enumerate(y) if digit))
    return vector - power + (power - 1) // (g - 1)


def linear_olh(z: int, epsilon: float, g: int, m: int) -> int:
    """Report value z: a point, and the bucket of z."""
    point, shift = randbelow((g**m - 1) // (g - 1)), 1 + randbelow(g - 1)
    noisy = randbelow(2**53) < ceil(2**53 * (g - 1) / (exp(epsilon) + g - 1))
    bucket = sum(a * b for a, b in zip(digits(vector_of(point, g), g, m), digits(z, g, m), strict=True))
    return point * g + (bucket + noisy * shift) % g


def pgr(z: int, epsilon: float, g: int, m: int) -> int:
    """Report value z: a point that is more probable on the plane of z."""
    points, on_plane = (g**m - 1) // (g - 1), (g ** (m - 1) - 1) // (g - 1)
    anywhere, number = randbelow(points), randbelow(on_plane)
    noisy = randbelow(2**53) < ceil(2**53 * points / (on_plane * (exp(epsilon) - 1) + points))
    x = digits(vector_of(z, g), g, m)
    place = max(place for place, digit in enumerate(x) if digit)
    y = digits(vector_of(number, g), g, m - 1)
    y.insert(place, 0)
    y[place] = -sum(a * b for a, b in zip(x, y, strict=True)) * pow(x[place], -1, g) % g
    near = point_of(y, g)
    return anywhere if noisy else near
