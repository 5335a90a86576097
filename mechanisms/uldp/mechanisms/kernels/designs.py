"""Symmetric block designs: their parameters, and which of them are best for a utility-optimized mechanism.

A symmetric design has V points and V blocks. Each block holds w points, each point is in w blocks, and each two points
are in lambda = w (w - 1) / (V - 1) blocks together. All designs here are cyclic: block t is D + t modulo V for one set
D, a difference set.

Sources: Hall, "Combinatorial Theory" (2nd edition, 1986), section 11, for the sets of residues and of Singer; Yoon,
Park, Nam & Lee, "Fundamental Limit of Discrete Distribution Estimation under Utility-Optimized Local Differential
Privacy" (arXiv 2509.24173) for the family of mechanisms over designs. The criterion of choice is ours.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from uldp.schemas.arrays import Floats

#: The most points of a design.
MOST_POINTS = 1 << 17


@dataclass(frozen=True)
class Design:
    """The parameters of a cyclic symmetric design, and its family.

    - Singles: D = {0}, for any V; then the mechanism is uRR.
    - Residues of power 2 modulo a prime V = 3 modulo 4, and those of power 4 modulo a prime V = 4 x^2 + 1 with odd x.
    - Singer: the hyperplanes of the space of m dimensions over the field of g elements, V = (g^m - 1) / (g - 1).

    The power, g or m is 0 in other families.
    """

    points: int  # V
    block: int  # w
    pairs: int  # lambda
    power: int = 0
    field: int = 0  # g
    dimension: int = 0  # m


def prime_factors(number: int) -> list[int]:
    """Return the prime factors of a number, each as often as it divides it, in ascending order."""
    factors, divisor = [], 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return factors + ([number] if number > 1 else [])


def prime_power(number: int) -> tuple[int, int] | None:
    """Return p and e with p^e = ``number``, for a prime p; None if there are none."""
    factors = prime_factors(number)
    return (factors[0], len(factors)) if len(set(factors)) == 1 else None


def is_prime(number: int) -> bool:
    """Return whether a number is prime."""
    return prime_factors(number) == [number]


def _residues(points: int) -> Iterator[Design]:
    if points > 3 and points % 4 == 3 and is_prime(points):
        yield Design(points, (points - 1) // 2, (points - 3) // 4, power=2)
    root = math.isqrt(points // 4)
    if points > 5 and points == 4 * root**2 + 1 and root % 2 and is_prime(points):
        yield Design(points, (points - 1) // 4, (points - 5) // 16, power=4)


def _singer(least: int, most: int) -> Iterator[Design]:
    for g in filter(prime_power, range(2, math.isqrt(most) + 1)):
        sizes = [1, g + 1, g * g + g + 1]
        while sizes[-1] < least:
            sizes.append(sizes[-1] * g + 1)
        while sizes[-1] <= most:
            yield Design(sizes[-1], sizes[-2], sizes[-3], field=g, dimension=len(sizes))
            sizes.append(sizes[-1] * g + 1)


@cache
def designs(sensitive: int, size: int) -> tuple[Design, ...]:
    """Return the designs for v sensitive symbols of k, each once: V from v to k + v, but at most ``MOST_POINTS``."""
    most = min(size + sensitive, MOST_POINTS)
    found = {(design.points, design.block): design for design in _singer(max(sensitive, 3), most)}
    for points in range(max(sensitive, 3), most + 1):
        found |= {(design.points, design.block): design for design in _residues(points)}
    single = Design(sensitive, 1, 0)
    return (single, *(found[key] for key in sorted(found, key=lambda key: (key[1], key[0]))))


def design_of(block: int, sensitive: int, size: int) -> Design:
    """Return the smallest design with blocks of w points; a ValueError without one names the nearest w with one."""
    known = designs(sensitive, size)
    found = next((design for design in known if design.block == block), None)
    if found is None:
        nearest = min((design.block for design in known), key=lambda each: (abs(each - block), each))
        raise ValueError(
            f"no design for {sensitive:,} sensitive symbols (values and tags) of {size:,} has blocks of {block:,}; the"
            f" nearest is {nearest:,}, or write auto"
        )
    return found


def best_design(epsilon: float, sensitive: int, size: int) -> Design:
    """Return the first design with the least regret: its error by that of the best, at the worst share of users."""
    known = designs(sensitive, size)
    if sensitive == 1:
        return known[0]  # its errors are 0 if all users hold the symbol
    holding, together = np.array([shares_of(design) for design in known]).T[:, :, np.newaxis]
    errors = total_variances(epsilon, sensitive, size, holding, together)
    return known[int((errors / errors.min(axis=0)).max(axis=1).argmin())]


def best_subset(epsilon: float, sensitive: int, size: int) -> int:
    """Return the size w of a set of v sensitive symbols, 1 to v - 1, with the least regret; see ``best_design``."""
    if sensitive < 3:
        return 1

    def errors(w: int) -> Floats:
        return total_variances(epsilon, sensitive, size, w / sensitive, (w - 1) / (sensitive - 1))

    # The variance falls and then rises with w at each share, so their largest multiple does too; the best w is at most
    # v/2.
    most = sensitive // 2

    def least_at(share: int) -> float:
        return float(errors(_lowest(lambda w: float(errors(w)[share]), most))[share])

    least = np.array([least_at(share) for share in range(len(errors(1)))])
    return _lowest(lambda w: float((errors(w) / least).max()), most)


def _lowest(height: Callable[[int], float], most: int) -> int:
    """Return the number from 1 to ``most`` where a function that falls and then rises is lowest."""
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if height(middle) <= height(middle + 1) else (middle + 1, high)
    return low


def shares_of(design: Design) -> tuple[float, float]:
    """Return the share of blocks that hold a point, and the share of these that hold a given other point."""
    return design.block / design.points, design.pairs / design.block


def total_variances(
    epsilon: float, sensitive: int, size: int, holding: float | Floats, together: float | Floats
) -> Floats:
    """Return n times the sum of the variances of r-hat over k symbols, v of them sensitive, by the share of users.

    The users with a sensitive symbol are a share alpha of all: 0, 1/16, ..., 1; only 1 if v = k. They hold each of the
    v symbols equally often, and the other users each of the other symbols. With E = e^epsilon,
    c = 1 / (h (E - 1) + 1), for blocks of which a share h holds a point and a share t of these a given other one, the
    probabilities of ``Channel`` are

        p = h E c      q = h c (1 + t (E - 1))      q' = h c      a = h (E - 1) c

    on Z_S, and a is p of the non-sensitive symbols. The result has the shape (17,), or (1,) if v = k, by alpha; (j, 17)
    if h and t, ``holding`` and ``together``, are of shape (j, 1).
    """
    alpha = np.linspace(0.0, 1.0, 17) if sensitive < size else np.ones(1)
    gain, free = math.expm1(epsilon), 1 - alpha
    c = 1 / (holding * gain + 1)
    p, q, q_free, a = holding * (gain + 1) * c, holding * c * (1 + together * gain), holding * c, holding * gain * c
    m = (p + q * (sensitive - 1)) * alpha / sensitive + q_free * free
    t, f = (q - q_free) / a, a * free
    of_sensitive = sensitive * (m * (1 - m) + t * f * (t * (1 - f) - 2 * m)) / (p - q) ** 2
    return np.asarray(of_sensitive + free * (1 - f / max(size - sensitive, 1)) / a)
