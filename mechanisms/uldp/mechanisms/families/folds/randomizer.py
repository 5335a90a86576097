"""Mechanisms that report one symbol, which a linear map folds into support counts, for large domains.

Sources: for projective geometry response, Feldman, Nelson, Nguyen & Talwar, "Private Frequency Estimation via
Projective Geometry" (ICML 2022); the rule for the field is ours. For local hashing, Wang et al., "Locally
Differentially Private Protocols for Frequency Estimation" (USENIX Security 2017), section 4.4. Linear functions over a
finite field collide by the same chance for any two values (Carter & Wegman, "Universal Classes of Hash Functions",
1979), so the mechanism is exactly pure. For Hadamard randomized response, the survey of Wang et al. (Sensors 20, 2020),
equations (46) and (47), after Nguyen et al. (2016) and Apple (2017). Binary local hashing (its equations (40) to (42))
with linear hash functions is the same mechanism: a row of the Hadamard matrix is a linear function of the bits of the
symbol.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.kernels.block_designs import walsh_hadamard
from uldp.mechanisms.kernels.projective_space import ProjectiveSpace, best_space, number_of_points
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.device_form import DeviceForm, threshold
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.mechanisms.randomizers.fold import FoldedMechanism
from uldp.schemas.arrays import Floats, Mask, Symbols, Values

# Sums of several columns are products with a matrix of so many numbers at the most; others are transforms.
_MOST_DENSE, _COLUMNS = 1 << 23, 8


class HadamardResponse(FoldedMechanism):
    """Hadamard randomized response, HRR; also binary local hashing, BLH, with a linear hash function.

    Let K be the least power of two with K >= |Z|. The Hadamard matrix has in row j and column z the entry -1 to the
    number of ones that the numbers j and z share in binary. The device draws a row j, uniform and independent of its
    symbol z. It reports j, and the bit b that is 1 where the entry of its symbol is -1, or with the probability of
    noise 1/(E+1), E = e^epsilon, the other bit. A report supports the symbols whose entry in row j fits the bit, with

        p = E/(E+1)    for z,    q = 1/2    for any other symbol,

    because two columns agree in half of the rows. Given z, the supports of two symbols are independent. The variance
    of an estimate is 1.06, 1.27, 2.4 and 14 times that of OLH at epsilon 1/2, 1, 2 and 4.

    Guarantee: one report is epsilon-LDP. Whatever the row, the likelihoods of a bit under two symbols differ by at most
    the factor E. The row says nothing about the symbol.

    A payload is the symbol 2 j + b.
    """

    answers = 2

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__(size, epsilon)
        self.rows = self.numbers = 1 << (size - 1).bit_length()
        self._of_payloads(2 * self.rows)
        self.chance_support = 1 / 2
        self.noise_probability = 1 / (2 + math.expm1(epsilon))
        self.channel = Channel(np.full(size, 1 - self.noise_probability), np.full(size, 1 / 2), independent_bits=True)

    def perturb(self, symbols: Values, randomness: Randomness) -> npt.NDArray[np.uint32]:
        self.check_symbols(symbols)
        rows = randomness.integers(0, self.rows, len(symbols))
        noisy = randomness.random(len(symbols)) < self.noise_probability
        bits = (np.bitwise_count(rows & symbols) & 1).astype(np.int64) ^ noisy
        payloads: npt.NDArray[np.uint32] = (2 * rows + bits).astype(np.uint32)
        return payloads

    def device_form(self) -> DeviceForm:
        return {"form": "row", "rows": self.rows, "noise": threshold(self.noise_probability)}

    @property
    def payload_text(self) -> str:
        return f"a row of {self.rows:,} and a bit: {self.statistic_size:,} payloads"

    def parts_of(self, payload: int) -> str:
        return f"row {payload // 2:,} of {self.rows:,}, bit {payload % 2}"

    def symbols_of(self, payload: int) -> Symbols:
        bits = np.bitwise_count(np.arange(self.size) & payload >> 1) & 1
        return np.flatnonzero(bits == payload & 1)

    def supports(self, cells: Floats) -> Floats:
        bits = cells.reshape(self.rows, 2, -1)
        sums: Floats = (bits.sum(axis=(0, 1)) + walsh_hadamard(bits[:, 0] - bits[:, 1])[: self.size]) / 2
        return sums

    def supported(self, symbols: Floats) -> Floats:
        signed = walsh_hadamard(np.pad(symbols, ((0, self.rows - self.size), (0, 0))))
        sums = symbols.sum(axis=0)
        return np.stack([sums + signed, sums - signed], axis=1).reshape(2 * self.rows, -1) / 2


class LinearHashing(FoldedMechanism):
    """Optimized local hashing with the functions h_a(z) = a.z, over the integers modulo a prime g.

    A symbol is a number in base g, with m digits. A hash function is a point a of the ``ProjectiveSpace`` of g and m:
    h_a(z) is the sum of the products of the digits of a and z, modulo g. The device draws a, uniform and independent of
    its symbol z, and hashes z into one of g buckets. With E = e^epsilon, it reports a and the bucket, or with the
    probability of noise (g-1)/(E+g-1) a uniform other bucket. A report supports the symbols that its function hashes
    into its bucket. Two symbols collide under the share c of the functions, whichever they are, so with r = E/(E+g-1),

        p = r    for z,    q = c r + (1-c) (1-r)/(g-1)    for any other symbol,    c = (g^(m-1) - 1)/(g^m - 1).

    g and m are those of ``best_space``. If m is 1, this is randomized response on g symbols.

    Guarantee: one report is epsilon-LDP. Whatever the function, the likelihoods of a bucket under two symbols differ by
    at most the factor E. The function says nothing about the symbol.

    A payload is the symbol a g + b, for point number a and bucket b.
    """

    def __init__(self, size: int, epsilon: float, space: ProjectiveSpace | None = None) -> None:
        super().__init__(size, epsilon)
        self.space = best_linear_space(size, epsilon) if space is None else space
        g, m = self.space.g, self.space.m
        if g**m < size:
            raise ValueError(f"a space of {g**m:,} vectors has no room for {size:,} symbols")
        self.numbers, self.answers = g**m, g
        self._of_payloads(self.space.points * g)
        self.chance_support = (g ** (m - 1) - 1) / (g**m - 1)
        self.noise_probability = (g - 1) / (g + math.expm1(epsilon))
        p, q = _hashing_law(g, m, epsilon)
        self.channel = Channel(np.full(size, p), np.full(size, q), independent_bits=True)

    def perturb(self, symbols: Values, randomness: Randomness) -> npt.NDArray[np.uint32]:
        self.check_symbols(symbols)
        n, g = len(symbols), self.space.g
        points = randomness.integers(0, self.space.points, n)
        noisy = randomness.random(n) < self.noise_probability
        shifts = randomness.integers(1, g, n)
        buckets = (self.space.products(self.space.vectors(points), symbols) + noisy * shifts) % g
        return (points * g + buckets).astype(np.uint32)

    def device_form(self) -> DeviceForm:
        noise = threshold(self.noise_probability)
        return {"form": "linear", "g": self.space.g, "m": self.space.m, "noise": noise}

    @property
    def payload_text(self) -> str:
        g, m = self.space.g, self.space.m
        return f"a point of m = {m} digits modulo g = {g}, and one of g buckets: {self.statistic_size:,} payloads"

    def parts_of(self, payload: int) -> str:
        g = self.space.g
        return f"{self.space.point_text(payload // g)}, bucket {payload % g} of {g}"

    def symbols_of(self, payload: int) -> Symbols:
        point, bucket = divmod(payload, self.space.g)
        vector = self.space.vectors(np.array([point]))
        return np.flatnonzero(self.space.products(vector, np.arange(self.size)) == bucket)

    def supports(self, cells: Floats) -> Floats:
        return self.space.sum_over_hyperplanes(cells.reshape(self.space.points, self.space.g, -1))[: self.size]

    def supported(self, symbols: Floats) -> Floats:
        numbers = np.pad(symbols, ((0, self.numbers - self.size), (0, 0)))
        return self.space.sum_over_vectors(numbers, self.space.g).reshape(-1, symbols.shape[1])


def best_linear_space(size: int, epsilon: float) -> ProjectiveSpace:
    """Return the space of ``LinearHashing`` for |Z| symbols; ValueError if there are too many."""

    def law(g: int, m: int) -> tuple[float, float, int]:
        return *_hashing_law(g, m, epsilon), number_of_points(g, m) * g if g**m >= size else 0

    return best_space(size, epsilon, law)


def _hashing_law(g: int, m: int, epsilon: float) -> tuple[float, float]:
    other = 1 / (g + math.expm1(epsilon))
    p, c = 1 - (g - 1) * other, (g ** (m - 1) - 1) / (g**m - 1)
    return p, c * p + (1 - c) * other


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
        super().__init__(size, epsilon)
        self.space = best_point_space(size, epsilon) if space is None else space
        points, s = self.space.points, self.space.on_hyperplane
        if s < 1 or points < size:
            raise ValueError(f"a space of {points:,} points has no room for {size:,} symbols")
        self._vectors, self.numbers = self.space.vectors(np.arange(size)), self.space.g**self.space.m
        self._of_payloads(points)
        self.chance_support = number_of_points(self.space.g, self.space.m - 2) / s
        self._uniform = points / (s * math.expm1(epsilon) + points)
        p, q = _point_law(self.space.g, self.space.m, epsilon)
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
        return (*_point_law(g, m, epsilon), points) if m > 1 and points >= size else (1.0, 0.0, 0)

    return best_space(size, epsilon, law)


def _point_law(g: int, m: int, epsilon: float) -> tuple[float, float]:
    points, s, t = (number_of_points(g, m - less) for less in range(3))
    more = math.expm1(epsilon)
    total = s * more + points
    return (s * more + s) / total, (t * more + s) / total


@lru_cache(maxsize=8)
def _incidence(space: ProjectiveSpace, size: int) -> Mask:
    """Return whether each point, a row, is on the hyperplane of each symbol; 8 MB at the most."""
    points, symbols = (space.digits(space.vectors(np.arange(each))).astype(np.float32) for each in (space.points, size))
    return np.asarray(np.fmod(points @ symbols.T, space.g) == 0)
