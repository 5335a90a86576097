"""Zones of a tag: docs/client/zones.md."""

from itertools import count
from math import ceil, exp
from secrets import randbelow


def is_prime(number: int) -> bool:
    """Return whether a number is prime."""
    return number > 1 and all(number % divisor for divisor in range(2, number))


def vectors(g: int, m: int) -> list[list[int]]:
    """Return the points, as vectors of m digits in base g."""
    numbers = [number for k in range(m) for number in range(g**k, 2 * g**k)]
    return [[number // g**k % g for k in reversed(range(m))] for number in numbers]


class Zones:
    """The points of a tag with this many zones, and the answer of a device."""

    def __init__(self, zones: int, zone_epsilon: float, epsilon: float) -> None:
        odds = exp(zone_epsilon)
        most = next(prime for prime in count(max(zones - 1, 2)) if is_prime(prime))
        g = min(filter(is_prime, range(2, most + 1)), key=lambda prime: (abs(prime - odds - 1), prime))
        m = next(m for m in count(2) if len(vectors(g, m)) >= zones)
        points = vectors(g, m)
        self.points = len(points)
        self.planes = [
            [y for y, other in enumerate(points) if sum(a * b for a, b in zip(x, other, strict=True)) % g == 0]
            for x in points[:zones]
        ]
        on_plane = len(self.planes[0])
        far = (exp(-zone_epsilon) - exp(-epsilon)) / (1 - exp(-epsilon))
        total = on_plane + (self.points - on_plane) * far
        self.weight, self.uniform = self.points / total, far * self.points / total

    def answer(self, zone: int) -> int:
        """Return the point for the zone of the hidden value."""
        anywhere, near = randbelow(self.points), self.planes[zone][randbelow(len(self.planes[zone]))]
        return anywhere if randbelow(2**53) < ceil(2**53 * self.uniform) else near
