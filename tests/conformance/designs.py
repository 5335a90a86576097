"""Difference sets and the numbers that ``auto`` stands for, after docs/client and docs/spec, without NumPy."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import count
from math import exp, isqrt, sqrt

Vector = tuple[int, ...]


def primes_of(number: int) -> list[int]:
    """The primes that divide a number, in ascending order."""
    return [p for p in range(2, number + 1) if number % p == 0 and all(p % q for q in range(2, isqrt(p) + 1))]


def is_prime(number: int) -> bool:
    return number > 1 and all(number % p for p in range(2, isqrt(number) + 1))


def _times(a: Vector, b: Vector, modulus: Vector, p: int) -> Vector:
    """The product of two polynomials, of which the lowest coefficient is the first, modulo x^degree + ``modulus``."""
    degree = len(modulus)
    product = [sum(a[i] * b[k - i] for i in range(degree) if 0 <= k - i < degree) for k in range(2 * degree - 1)]
    for place in reversed(range(degree, 2 * degree - 1)):
        for j, coefficient in enumerate(modulus):
            product[place - degree + j] -= product[place] * coefficient
    return tuple(number % p for number in product[:degree])


def _powers(modulus: Vector, p: int) -> list[Vector]:
    """All powers of x that differ, from 1 on, or those until one is 0."""
    one, x = (1, *[0] * (len(modulus) - 1)), (0, 1, *[0] * (len(modulus) - 2))
    powers = [one]
    while (following := _times(powers[-1], x, modulus, p)) != one and any(following) and len(powers) < p ** len(x):
        powers.append(following)
    return powers


def singer(g: int, m: int) -> list[int]:
    """The exponents of the powers of x that have the trace 0 over the field of g elements."""
    p = primes_of(g)[0]
    degree = m * next(e for e in count(1) if p**e == g)
    moduli = (tuple(number // p**k % p for k in range(degree)) for number in count(1))
    powers = next(all_of for modulus in moduli if len(all_of := _powers(modulus, p)) == p**degree - 1)
    conjugates = [[powers[i * g**j % len(powers)] for j in range(m)] for i in range((g**m - 1) // (g - 1))]
    return [i for i, of in enumerate(conjugates) if not any(sum(column) % p for column in zip(*of, strict=True))]


def residues(power: int, points: int) -> list[int]:
    """The numbers that are such a power modulo V, but for the power of 0."""
    return sorted({x**power % points for x in range(1, points)})


def _sets(v: int, k: int) -> Iterator[tuple[int, int, Callable[[], list[int]]]]:
    """V, w and D of the designs for v of k symbols, in the order in which one of equal V and w counts."""
    yield v, 1, lambda: [0]
    for points in range(max(v, 3), min(k + v, 1 << 17) + 1):
        if points >= 7 and points % 4 == 3 and is_prime(points):
            yield points, (points - 1) // 2, partial(residues, 2, points)
        root = isqrt(points // 4)
        if points >= 37 and points == 4 * root**2 + 1 and root % 2 and is_prime(points):
            yield points, (points - 1) // 4, partial(residues, 4, points)
        for g in range(2, isqrt(points) + 1):
            m = next(m for m in count(1) if (g**m - 1) // (g - 1) >= points)
            if m >= 3 and (g**m - 1) // (g - 1) == points and len(primes_of(g)) == 1:
                yield points, (g ** (m - 1) - 1) // (g - 1), partial(singer, g, m)


def design(w: int | None, v: int, k: int, epsilon: float) -> tuple[int, list[int]]:
    """V and D of the design with blocks of w points, or of the best one."""
    known = list(_sets(v, k))
    if w is None:
        w, points = min(
            ((each, V) for V, each, _ in known),
            key=lambda of: (regret(epsilon, v, k, of, [(each, V) for V, each, _ in known]), of),
        )
    else:
        points = min(V for V, each, _ in known if each == w)
    return points, next(made for V, each, made in known if (V, each) == (points, w))()


@cache
def best_subset(v: int, k: int, epsilon: float) -> int:
    """The size w of a set of v sensitive symbols of k with the least regret."""
    sizes = [(w, v) for w in range(1, max(v, 2))]
    return min(sizes, key=lambda of: (regret(epsilon, v, k, of, sizes), of))[0]


def regret(epsilon: float, v: int, k: int, of: tuple[int, int], others: list[tuple[int, int]]) -> float:
    """How many times the least error that of w and V is, at the worst share; docs/spec."""
    if v == 1:
        return 1
    of_others = [errors(epsilon, v, k, *each) for each in others]
    least: list[float] = [min(column) for column in zip(*of_others, strict=True)]
    return max(one / other for one, other in zip(errors(epsilon, v, k, *of), least, strict=True))


@cache
def errors(epsilon: float, v: int, k: int, w: int, points: int) -> list[float]:
    """The sums of variances of docs/spec, by the share of users with a sensitive symbol."""
    h, t = w / points, (w - 1) / (points - 1) if w > 1 else 0
    return [variance(epsilon, v, k, h, t, step / 16) for step in range(17 if v < k else 0)] or [
        variance(epsilon, v, k, h, t, 1)
    ]


def variance(epsilon: float, v: int, k: int, h: float, t: float, s: float) -> float:
    big_e = exp(epsilon)
    c = 1 / (h * (big_e - 1) + 1)
    p, q, q_free, a = h * big_e * c, h * c * (1 + t * (big_e - 1)), h * c, h * (big_e - 1) * c
    m, f, u = s / v * (p + q * (v - 1)) + q_free * (1 - s), a * (1 - s), (q - q_free) / a
    of_others = (1 - s) / a * (1 - f / (k - v)) if k > v else 0
    return v * (m * (1 - m) + u * f * (u * (1 - f) - 2 * m)) / (p - q) ** 2 + of_others


@cache
def best_theta(v: int, k: int, epsilon: float) -> float:
    """The theta of urap with the least l1 error, of docs/spec."""

    def error(theta: float) -> float:
        d, p = theta / ((1 - theta) * exp(epsilon) + theta), theta * (1 - exp(-epsilon))
        m = d + (theta - d) / k
        return v * sqrt(m * (1 - m)) / (theta - d) + (k - v) * sqrt((1 - p / k) / (p * k))

    return min((step / 256 for step in range(1, 256)), key=error)
