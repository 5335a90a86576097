"""A mechanism that reports a linear hash function and the perturbed hash of the value, for large domains.

Source: Wang et al., "Locally Differentially Private Protocols for Frequency Estimation" (USENIX Security 2017),
section 4.4, for optimized local hashing. Linear functions over a finite field collide by the same chance for any two
values (Carter & Wegman, "Universal Classes of Hash Functions", 1979), so the mechanism is exactly pure.
"""

import math

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.kernels.projective_space import ProjectiveSpace, best_space, number_of_points
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.device_form import DeviceForm, threshold
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.mechanisms.randomizers.fold import FoldedMechanism
from uldp.schemas.arrays import Floats, Symbols, Values


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
        """Build the mechanism over ``size`` symbols; ValueError if the space, by default the best, is too small."""
        super().__init__(size, epsilon)
        self.space = best_linear_space(size, epsilon) if space is None else space
        g, m = self.space.g, self.space.m
        if g**m < size:
            raise ValueError(f"a space of {g**m:,} vectors has no room for {size:,} symbols")
        self.numbers, self.answers = g**m, g
        self._of_payloads(self.space.points * g)
        self.chance_support = (g ** (m - 1) - 1) / (g**m - 1)
        self.noise_probability = (g - 1) / (g + math.expm1(epsilon))
        p, q = _law(g, m, epsilon)
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
        return *_law(g, m, epsilon), number_of_points(g, m) * g if g**m >= size else 0

    return best_space(size, epsilon, law)


def _law(g: int, m: int, epsilon: float) -> tuple[float, float]:
    """Return p and q."""
    other = 1 / (g + math.expm1(epsilon))
    p, c = 1 - (g - 1) * other, (g ** (m - 1) - 1) / (g**m - 1)
    return p, c * p + (1 - c) * other
