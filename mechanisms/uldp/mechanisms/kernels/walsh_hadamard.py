"""The fast transform by Hadamard's matrix: entry (i, j) is -1 to the number of ones that i and j share in binary."""

from functools import cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from uldp.schemas.arrays import Floats

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
    """Return the products of the matrix of order 64^2 and each 64^2 entries.

    It is the Kronecker product of two of order 64, so it multiplies the entries, as a square, from both sides.
    """
    squares = vector.reshape(-1, _ORDER, _ORDER, *vector.shape[1:])
    if vector.ndim == 1:
        squares = squares[..., np.newaxis]
    matrix = _matrix()
    multiplied = matrix @ np.ascontiguousarray(np.moveaxis(squares, -1, 0)) @ matrix
    return np.ascontiguousarray(np.moveaxis(multiplied, 0, -1)).reshape(vector.shape)


@cache
def _matrix() -> Floats:
    """The matrix of order 64."""
    return walsh_hadamard(np.eye(_ORDER))
