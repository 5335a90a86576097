"""Histograms, and values with a distance: docs/client/integers.md."""

from itertools import accumulate
from math import ceil, exp, hypot
from secrets import randbelow


def she(z: int, epsilon: float, size: int) -> bytes:
    """Report value z: an integer for each value, in two bytes with sign."""
    flip, odds = ceil(2**53 / (1 + exp(epsilon / 2))), [exp(min(epsilon / 2 * 2**bit, 700)) for bit in range(15)]
    bits = [ceil(2**53 / (1 + each)) for each in odds if each < 2**53 - 1]
    payload = b""
    for value in range(size):
        one = (value == z) ^ (randbelow(2**53) < flip)
        magnitude = sum((randbelow(2**53) < below) << bit for bit, below in enumerate(bits))
        payload += min(1 + magnitude if one else -magnitude, 32767).to_bytes(2, "little", signed=True)
    return payload


def weights(z: int, size: int, epsilon: float, scale: float, columns: int) -> list[int]:
    """Return the weights of all y for value z, of the sum 2^62."""
    sides = [side for side in (size // columns, columns) if side > 2]
    border = 1 / (1 - exp(-scale)) if epsilon * min(sides, default=0) >= len(sides) else 1

    def weight(y: int) -> float:
        distance = hypot(y % columns - z % columns, y // columns - z // columns)
        places = (y // columns, size // columns), (y % columns, columns)
        ends = sum(place in (0, side - 1) for place, side in places if side > 2)
        return border**ends * exp(-scale * min(epsilon * distance, 18) / epsilon)

    floats = [weight(y) for y in range(size)]
    total = sum(floats)
    parts = [round(each / total * 2**62) for each in floats]
    parts[floats.index(max(floats))] += 2**62 - sum(parts)
    return parts


def metric(z: int, size: int, epsilon: float, scale: float, columns: int | None = None) -> int:
    """Report a symbol near z."""
    drawn, sums = randbelow(2**62), accumulate(weights(z, size, epsilon, scale, columns or size))
    return sum(below <= drawn for below in sums)
