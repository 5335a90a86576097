"""The fast transform by Hadamard's matrix: entry (i, j) is -1 to the number of ones that i and j share in binary."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", np.int64, np.float64)


def walsh_hadamard(vector: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return the product of the matrix and a vector, or columns, of K entries, a power of 2, in O(K log K)."""
    product, half = np.array(vector, order="C"), 1
    while half < len(product):
        pairs = product.reshape(-1, 2, half, *product.shape[1:])
        low, high = pairs[:, 0], pairs[:, 1]
        sums = low + high
        np.subtract(low, high, out=high)
        low[...] = sums
        half *= 2
    return product
