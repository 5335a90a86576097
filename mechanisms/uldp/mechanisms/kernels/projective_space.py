"""Vectors and points over the integers modulo a prime, and sums over their hyperplanes by one Fourier transform.

Linear hash functions (``LinearHashing``) and projective geometry response (``ProjectiveGeometryResponse``,
``ProjectiveResponse``) are made of these.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from uldp.schemas.arrays import Floats, Symbols, Values

#: A space has at most this many vectors, so that a transform takes at most a second and some hundred megabytes.
MOST_VECTORS = 1 << 23

# A space with a variance of more than so many times that of OLH is refused.
_MOST_LOSS = 1.2


def number_of_points(g: int, m: int) -> int:
    """Return P = (g^m - 1)/(g - 1), the number of points of the projective space of dimension m - 1."""
    return int((g**m - 1) // (g - 1))


def primes(most: int) -> Symbols:
    """Return the primes up to ``most``."""
    prime = np.arange(most + 1) > 1
    for divisor in range(2, math.isqrt(most) + 1):
        if prime[divisor]:
            prime[divisor * divisor :: divisor] = False
    return np.flatnonzero(prime)


def best_space(size: int, epsilon: float, law: Callable[[int, int], tuple[float, float, int]]) -> "ProjectiveSpace":
    """Return the space with the fewest cells of those whose variance is at most 2 % above the least.

    The variance is that of the estimate of a symbol that no device holds, q (1 - q)/(p - q)^2; that of OLH is
    4 E/(E - 1)^2 = 1/sinh(epsilon/2)^2 (Wang et al., USENIX Security 2017, equation (13)). It is the least near
    g = e^epsilon + 1; or if the domain is small, where m is the least and g the first prime with enough room. ``law``
    gives p, q and the number of cells from g and m; no cells if the space has no room for all symbols.
    """
    # There is a prime between a number and its double. A prime with room for all symbols is the largest of use.
    candidates = primes(2 * max(size, 2))
    candidates = candidates[: np.searchsorted(candidates, size) + 1]
    few = candidates[candidates <= 4 * (math.exp(epsilon) + 2)]
    found = []
    for g in dict.fromkeys([*few.tolist(), int(candidates[-1])]):
        for m in range(1, math.floor(math.log(MOST_VECTORS + 0.5, g)) + 1):
            p, q, cells = law(g, m)
            if cells:
                found.append((q * (1 - q) / (p - q) ** 2, cells, ProjectiveSpace(g, m)))
                break
    least = min((variance for variance, _, _ in found), default=math.inf)
    if least > _MOST_LOSS / math.sinh(epsilon / 2) ** 2:
        raise ValueError(
            f"{size:,} values at epsilon {epsilon:g} need more than the {MOST_VECTORS:,} vectors of the"
            " largest space; merge values, take another epsilon, or linear-olh in place of pgr"
        )
    return min((each for each in found if each[0] <= 1.02 * least), key=lambda each: (each[1], each[2].g))[2]


@dataclass(frozen=True)
class ProjectiveSpace:
    """The vectors of m numbers modulo the prime g, and its points: the vectors whose first number but 0 is 1.

    A vector is a number in base g. The points are in ascending order, and numbered from 0. So those with k numbers
    after the 1 are the vectors g^k, ..., 2 g^k - 1, and the first of them is point (g^k - 1)/(g - 1).
    """

    g: int
    m: int

    @property
    def points(self) -> int:
        """P, the number of points."""
        return number_of_points(self.g, self.m)

    @cached_property
    def _powers(self) -> Symbols:
        return np.array([self.g**k for k in range(self.m)], dtype=np.int64)

    def vectors(self, points: Values) -> Symbols:
        """Return the vectors of points of shape (n,), as numbers."""
        firsts = (self._powers - 1) // (self.g - 1)
        after = np.searchsorted(firsts, points, side="right") - 1
        return np.asarray(self._powers[after] + points - firsts[after])

    def digits(self, vectors: Values) -> Symbols:
        """Return the digits of vectors of shape (n,), the first one first, shape (n, m)."""
        return np.asarray(vectors[:, np.newaxis] // self._powers[::-1] % self.g)

    def point_text(self, point: int) -> str:
        """Return a point as its number and its digits.

        >>> ProjectiveSpace(3, 2).point_text(2)
        'point 2 of 4 (1 1 modulo 3)'
        """
        (digits,) = self.digits(self.vectors(np.array([point])))
        return f"point {point:,} of {self.points:,} ({' '.join(map(str, digits.tolist()))} modulo {self.g})"

    def products(self, vectors: Values, others: Values) -> Symbols:
        """Return the sums of the products of the digits of vectors, modulo g, shape (n,); one vector may be for all."""
        sums = np.zeros(np.broadcast_shapes(vectors.shape, others.shape), dtype=np.int64)
        for power in self._powers.tolist():
            sums += (vectors // power % self.g) * (others // power % self.g)
        return np.asarray(sums % self.g)

    @property
    def on_hyperplane(self) -> int:
        """s = (g^(m-1) - 1)/(g - 1), the number of points on a hyperplane."""
        return number_of_points(self.g, self.m - 1)

    def hyperplane_points(self, points: Values, numbers: Values) -> Symbols:
        """Return a point y of the hyperplane sum_l x_l y_l = 0 of each point x, both of shape (n,).

        The digits of y but one are those of a point of the space of dimension m - 2: of this number, from 0 to
        ``on_hyperplane`` - 1. The one that is left is at the last digit of x that is not 0, and solves the equation. It
        is 0 if the first 1 of the others comes after it. So the first digit but 0 is a 1 in any case, and different
        numbers give different points.
        """
        x = self.digits(self.vectors(points))
        smaller = ProjectiveSpace(self.g, self.m - 1)
        others = smaller.digits(smaller.vectors(numbers))
        place = self.m - 1 - np.argmax(x[:, ::-1] != 0, axis=1)
        columns = np.arange(self.m)
        # The digits of y, with a 0 at the place.
        moved = np.take_along_axis(others, np.maximum(columns - (columns > place[:, np.newaxis]), 0) % (self.m - 1), 1)
        y = np.where(columns == place[:, np.newaxis], 0, moved)
        rows = np.arange(len(points))
        y[rows, place] = -(x * y).sum(axis=1) * self._inverses[x[rows, place]] % self.g
        vectors = y @ self._powers[::-1]
        after = np.searchsorted(self._powers, vectors, side="right") - 1
        return np.asarray((self._powers[after] - 1) // (self.g - 1) + vectors - self._powers[after])

    @cached_property
    def _inverses(self) -> Symbols:
        return np.array([0, *(pow(number, -1, self.g) for number in range(1, self.g))], dtype=np.int64)

    @cached_property
    def _multiples(self) -> Symbols:
        """Shape (P, g - 1): the vectors t a of each point a, for t from 1. They are all vectors but 0, once each."""
        vectors = self.vectors(np.arange(self.points))
        multiples = np.zeros((self.points, self.g - 1), dtype=np.int64)
        factors = np.arange(1, self.g)
        for power in self._powers.tolist():
            digit = vectors // power % self.g
            multiples += digit[:, np.newaxis] * factors % self.g * power
        return multiples

    def sum_over_hyperplanes(self, numbers: Floats) -> Floats:
        """Return sum_a numbers[a, a.x], for each vector x: shape (g^m,).

        a.x is the sum of the products of the digits modulo g. The indicator of a.x = b is (1/g) sum_t w^(t (a.x - b))
        with w = e^(2 pi i/g). So the sums are one inverse Fourier transform of the transforms of the rows, where that
        of row a at t is at the vector t a. Numbers have the shape (P, g), or (P, 1) if only b = 0 counts; further axes
        are kept.
        """
        g, columns = self.g, numbers.shape[2:]
        spectrum = np.empty((g**self.m, *columns), dtype=np.complex128)
        spectrum[0] = numbers.sum(axis=(0, 1))
        spectrum[self._multiples] = np.fft.fft(numbers, axis=1)[:, 1:] if numbers.shape[1] == g else numbers
        # The sums are real, so half of the spectrum says all.
        half = spectrum.reshape(-1, g, *columns)[:, : g // 2 + 1].reshape(*[g] * (self.m - 1), g // 2 + 1, *columns)
        sums = np.fft.irfftn(half, s=(g,) * self.m, axes=tuple(range(self.m)))
        return np.asarray(sums.reshape(-1, *columns) * (g**self.m // g))

    def sum_over_vectors(self, numbers: Floats, buckets: int) -> Floats:
        """Sum numbers (g^m, ...) of all x with a.x = b < buckets: the transpose of the above."""
        grid = numbers.reshape(*[self.g] * self.m, *numbers.shape[1:])
        spectrum = np.conj(np.fft.fftn(grid, axes=tuple(range(self.m))).reshape(numbers.shape))
        first = np.broadcast_to(spectrum[0], (self.points, 1, *numbers.shape[1:]))
        rows = np.concatenate([first, spectrum[self._multiples]], axis=1)
        of_buckets: npt.NDArray[np.complex128] = np.fft.fft(rows, axis=1) if buckets > 1 else rows.sum(1, keepdims=True)
        return np.asarray(of_buckets.real / self.g)
