"""Block designs as linear maps: sums over the blocks of each point, and draws of a block that holds a point.

Sources: Acharya, Sun & Zhang, "Hadamard Response" (AISTATS 2019) for the design of a Hadamard matrix; Hall,
"Combinatorial Theory" (2nd edition, 1986), section 11, for cyclic difference sets, and Singer (1938) for those of
projective spaces.
"""

from abc import ABC, abstractmethod
from functools import cache, cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.kernels.designs import Design, prime_factors, prime_power
from uldp.schemas.arrays import Counts, Floats, Symbols

Number = TypeVar("Number", np.int64, np.float64)

# Floats are first multiplied by matrices of this order, from both sides. BLAS takes one thread for no larger ones.
_ORDER = 64


def walsh_hadamard(vector: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return the product of the matrix and a vector, or columns, of K = 2^j entries in O(K log K); integers exactly."""
    product, half = np.array(vector, order="C"), 1
    if product.dtype == np.float64 and len(product) >= _ORDER**2:
        product[...], half = _of_squares(product.astype(np.float64, copy=False)), _ORDER**2
    while half < len(product):
        pairs = product.reshape(-1, 2, half, *product.shape[1:])
        low, high = pairs[:, 0], pairs[:, 1]
        sums = low + high
        np.subtract(low, high, out=high)
        low[...] = sums
        half *= 2
    return product


def _of_squares(vector: Floats) -> Floats:
    """Return the products of the matrix of order 64^2, which is a Kronecker square, and each 64^2 entries."""
    squares = vector.reshape(-1, _ORDER, _ORDER, *vector.shape[1:])
    if vector.ndim == 1:
        squares = squares[..., np.newaxis]
    matrix = _matrix()
    multiplied = matrix @ np.ascontiguousarray(np.moveaxis(squares, -1, 0)) @ matrix
    return np.ascontiguousarray(np.moveaxis(multiplied, 0, -1)).reshape(vector.shape)


@cache
def _matrix() -> Floats:
    return walsh_hadamard(np.eye(_ORDER))


# A sum of integers by FFT is exact if they have at most this many bits and there are at most 2^17.
_EXACT_BITS = 20


class BlockDesign(ABC):
    """Points and blocks: each point is in ``holding`` blocks, and each two points are ``together`` in so many."""

    points: int
    blocks: int
    holding: int
    together: int
    equal_blocks: bool
    draws: int  # ``holding_block`` needs a uniform number below this

    @abstractmethod
    def sums(self, counts: Counts) -> Counts:
        """Sum counts of blocks, shape (blocks,), over the blocks that hold each point; shape (points,), exactly."""

    @abstractmethod
    def over_blocks(self, x: Floats) -> Floats:
        """Sum vectors, shape (blocks, j), over the blocks that hold each point; shape (points, j)."""

    @abstractmethod
    def over_points(self, x: Floats) -> Floats:
        """Sum vectors, shape (points, j), over the points of each block; shape (blocks, j)."""

    @abstractmethod
    def device_numbers(self) -> dict[str, Any]:
        """Return what a device computes ``holding_block`` by: ``blocks``, and ``set`` unless they are columns."""

    @abstractmethod
    def holding_block(self, points: Symbols, drawn: Symbols) -> Symbols:
        """Return a block that holds each point; uniform among these if ``drawn`` is uniform below ``draws``."""


class HadamardDesign(BlockDesign):
    """Sylvester's Hadamard matrix of order V: point i is row i + 1, and block j the rows with 1 in column j."""

    equal_blocks = False

    def __init__(self, least: int) -> None:
        """Build the smallest design with at least this many points."""
        self.blocks = self.draws = 1 << least.bit_length()
        self.points, self.holding, self.together = self.blocks - 1, self.blocks // 2, self.blocks // 4

    def sums(self, counts: Counts) -> Counts:
        """See the base class; a sum of signed counts stays in 64 bits."""
        return np.asarray((counts.sum() + walsh_hadamard(counts)[1:]) // 2)

    def over_blocks(self, x: Floats) -> Floats:
        return np.asarray((x.sum(axis=0) + walsh_hadamard(x)[1:]) / 2)

    def over_points(self, x: Floats) -> Floats:
        rows = np.concatenate([np.zeros_like(x[:1]), x])
        return np.asarray((x.sum(axis=0) + walsh_hadamard(rows)) / 2)

    def device_numbers(self) -> dict[str, Any]:
        return {"blocks": self.blocks, "set": None}

    def holding_block(self, points: Symbols, drawn: Symbols) -> Symbols:
        """Return the drawn column, with the lowest bit of the row flipped if its entry is -1."""
        rows = points + 1
        odd = np.bitwise_count(rows & drawn).astype(np.int64) & 1
        return np.asarray(drawn ^ (odd * (rows & -rows)))


class CyclicDesign(BlockDesign):
    """The design of a difference set D modulo V: block t holds the points D + t."""

    equal_blocks = True

    def __init__(self, parameters: Design) -> None:
        """Build the design with these parameters."""
        self.set = difference_set(parameters)
        self.points = self.blocks = parameters.points
        self.holding = self.draws = parameters.block
        self.together = parameters.pairs

    @cached_property
    def _transformed(self) -> npt.NDArray[np.complex128]:
        """The Fourier transform of the indicator of D."""
        inside = np.zeros(self.points)
        inside[self.set] = 1
        return np.fft.rfft(inside)

    def _convolve(self, x: Floats, transformed: npt.NDArray[np.complex128]) -> Floats:
        spectrum = np.fft.rfft(x, axis=0) * transformed.reshape(-1, *[1] * (x.ndim - 1))
        return np.fft.irfft(spectrum, n=self.points, axis=0)

    def sums(self, counts: Counts) -> Counts:
        """See the base class. Counts are added by parts of 20 bits, so that rounding gives exact integers."""
        total: Counts = np.zeros(self.points, dtype=np.int64)
        shift, rest = 0, counts
        while rest.any():
            part = (rest & ((1 << _EXACT_BITS) - 1)).astype(np.float64)
            total += np.rint(self.over_blocks(part)).astype(np.int64) << shift
            shift, rest = shift + _EXACT_BITS, rest >> _EXACT_BITS
        return total

    def over_blocks(self, x: Floats) -> Floats:
        """See the base class; point i is in the blocks i - D."""
        return self._convolve(x, self._transformed)

    def over_points(self, x: Floats) -> Floats:
        """See the base class; block t holds the points t + D."""
        return self._convolve(x, self._transformed.conj())

    def device_numbers(self) -> dict[str, Any]:
        return {"blocks": self.blocks, "set": self.set.tolist()}

    def holding_block(self, points: Symbols, drawn: Symbols) -> Symbols:
        """Return block i - D[drawn] modulo V for point i."""
        return (points - self.set[drawn]) % self.points


@cache
def difference_set(design: Design) -> Symbols:
    """Return D in ascending order, shape (w,).

    Residues are the powers of all numbers modulo V but 0. Singer's set has the i below V with Tr(a^i) = 0, where a
    generates the field of g^m elements, and Tr(y) = sum_j y^(g^j), j < m, is its trace. With g = p^e for a prime p, a
    is x modulo the first primitive polynomial of degree em over the integers modulo p, in the order of the number that
    its coefficients below x^(em) are in base p, from the highest.
    """
    if design.power:
        numbers = np.arange(1, design.points)
        residues = numbers * numbers % design.points
        found: Symbols = np.unique(residues if design.power == 2 else residues * residues % design.points)
    elif design.field:
        found = _singer_set(design)
    else:
        found = np.zeros(1, dtype=np.int64)
    assert len(found) == design.block
    found.flags.writeable = False
    return found


def _singer_set(design: Design) -> Symbols:
    factors = prime_power(design.field)
    assert factors is not None  # so the design was chosen
    p, exponent = factors
    degree = exponent * design.dimension
    x = _primitive(p, degree)
    # The first column of a power of this matrix is that power of x. Row k of the trace is that of x^k, which is linear
    # over the integers modulo p.
    fields = [design.field**j for j in range(design.dimension)]
    trace = np.sum([[_power(x, k * each, p)[:, 0] for each in fields] for k in range(degree)], axis=1) % p
    powers = np.eye(1, degree, dtype=np.int64)
    while len(powers) < design.points:
        powers = np.concatenate([powers, powers @ _power(x, len(powers), p).T % p])
    return np.flatnonzero(~(powers[: design.points] @ trace % p).any(axis=1))


def _primitive(p: int, degree: int) -> Symbols:
    """Return the matrix of the multiplication by x modulo the first primitive polynomial."""
    order, one = p**degree - 1, np.eye(degree, dtype=np.int64)
    divisors = [order // prime for prime in set(prime_factors(order))]
    for number in range(1, p**degree):
        x = np.eye(degree, k=-1, dtype=np.int64)
        x[:, -1] = [-(number // p**k) % p for k in range(degree)]
        if (_power(x, order, p) == one).all() and all((_power(x, each, p) != one).any() for each in divisors):
            return x
    raise AssertionError("each field has a primitive polynomial")


def _power(matrix: Symbols, exponent: int, p: int) -> Symbols:
    """Return a power of a matrix modulo p."""
    result: Symbols = np.eye(len(matrix), dtype=np.int64)
    while exponent:
        if exponent & 1:
            result = result @ matrix % p
        matrix, exponent = matrix @ matrix % p, exponent >> 1
    return result
