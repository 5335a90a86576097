"""A mechanism that reports one point of a finite geometry, for large domains: projective geometry response.

Source: Feldman, Nelson, Nguyen & Talwar, "Private Frequency Estimation via Projective Geometry" (ICML 2022). The rule
for the field is ours.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.kernels.projective_space import ProjectiveSpace, best_space, number_of_points
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.device_form import DeviceForm, threshold
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.mechanisms.randomizers.fold import FoldedMechanism
from uldp.schemas.arrays import Floats, Mask, Symbols, Values

# Sums of several columns are products with a matrix of so many numbers at the most; others are transforms.
_MOST_DENSE, _COLUMNS = 1 << 23, 8


class ProjectiveGeometryResponse(FoldedMechanism):
    """Projective geometry response, PGR: a report is a point, likelier on the hyperplane of the true symbol.

    Symbol z is point z of the ``ProjectiveSpace`` of g and m, which has

        P = (g^m - 1)/(g - 1) points,       s = (g^(m-1) - 1)/(g - 1) on a hyperplane,
                                            t = (g^(m-2) - 1)/(g - 1) on any two hyperplanes.

    The hyperplane of z is the points y with z.y = 0: the sum of the products of their digits modulo g. With E =
    e^epsilon and D = s E + P - s, a point on it has the probability E/D, any other 1/D. Both follow one rule: with
    probability P/D report a uniform point, otherwise a uniform point of the hyperplane. A report y supports the symbols
    on whose hyperplanes it is, with

        p = s E/D    for z,    q = (t E + s - t)/D    for any other symbol.

    g and m are those of ``best_space``, with m >= 2. The variance is that of OLH, up to 2 %.

    Guarantee: one report is epsilon-LDP. The probabilities of a point under two symbols differ by at most the factor E.

    A payload is the number of the point.
    """

    def __init__(self, size: int, epsilon: float, space: ProjectiveSpace | None = None) -> None:
        """Build the mechanism over ``size`` symbols; ValueError if the space, by default the best, is too small."""
        super().__init__(size, epsilon)
        self.space = best_point_space(size, epsilon) if space is None else space
        points, s = self.space.points, self.space.on_hyperplane
        if s < 1 or points < size:
            raise ValueError(f"a space of {points:,} points has no room for {size:,} symbols")
        self._vectors, self.numbers = self.space.vectors(np.arange(size)), self.space.g**self.space.m
        self._of_payloads(points)
        self.chance_support = number_of_points(self.space.g, self.space.m - 2) / s
        self._uniform = points / (s * math.expm1(epsilon) + points)
        p, q = _law(self.space.g, self.space.m, epsilon)
        self.channel = Channel(np.full(size, p), np.full(size, q), independent_bits=True)

    def perturb(self, symbols: Values, randomness: Randomness) -> npt.NDArray[np.uint32]:
        self.check_symbols(symbols)
        n = len(symbols)
        anywhere = randomness.random(n) < self.uniform_probability
        drawn = self.uniform(n, randomness)
        near = self.space.hyperplane_points(symbols, randomness.integers(0, self.space.on_hyperplane, n))
        return np.where(anywhere, drawn, near).astype(np.uint32)

    def device_form(self) -> DeviceForm:
        noise = threshold(self.uniform_probability)
        return {"form": "point", "g": self.space.g, "m": self.space.m, "noise": noise}

    @property
    def payload_text(self) -> str:
        return f"a point of m = {self.space.m} digits modulo g = {self.space.g}: {self.statistic_size:,} payloads"

    def parts_of(self, payload: int) -> str:
        return self.space.point_text(payload)

    @property
    def uniform_probability(self) -> float:
        """The probability of a uniform point, P/D."""
        return self._uniform

    def symbols_of(self, payload: int) -> Symbols:
        return np.flatnonzero(self.space.products(self.space.vectors(np.array([payload])), self._vectors) == 0)

    def supports(self, cells: Floats) -> Floats:
        if self._is_dense(cells):
            return np.asarray(_incidence(self.space, self.size).T.astype(np.float64) @ cells)
        return np.asarray(self.space.sum_over_hyperplanes(cells[:, np.newaxis])[self._vectors])

    def supported(self, symbols: Floats) -> Floats:
        if self._is_dense(symbols):
            return np.asarray(_incidence(self.space, self.size).astype(np.float64) @ symbols)
        numbers = np.zeros((self.numbers, symbols.shape[1]))
        numbers[self._vectors] = symbols
        return self.space.sum_over_vectors(numbers, 1)[:, 0]

    def _is_dense(self, columns: Floats) -> bool:
        return columns.shape[1] >= _COLUMNS and self.size * self.space.points <= _MOST_DENSE


def best_point_space(size: int, epsilon: float) -> ProjectiveSpace:
    """Return the space of ``ProjectiveGeometryResponse`` for |Z| symbols; ValueError if there are too many."""

    def law(g: int, m: int) -> tuple[float, float, int]:
        points = number_of_points(g, m)
        return (*_law(g, m, epsilon), points) if m > 1 and points >= size else (1.0, 0.0, 0)

    return best_space(size, epsilon, law)


def _law(g: int, m: int, epsilon: float) -> tuple[float, float]:
    """Return p and q."""
    points, s, t = (number_of_points(g, m - less) for less in range(3))
    more = math.expm1(epsilon)
    total = s * more + points
    return (s * more + s) / total, (t * more + s) / total


@lru_cache(maxsize=8)
def _incidence(space: ProjectiveSpace, size: int) -> Mask:
    """Return whether each point, a row, is on the hyperplane of each symbol; 8 MB at the most."""
    points, symbols = (space.digits(space.vectors(np.arange(each))).astype(np.float32) for each in (space.points, size))
    return np.asarray(np.fmod(points @ symbols.T, space.g) == 0)
