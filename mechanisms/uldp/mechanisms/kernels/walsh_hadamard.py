"""The fast transform by Hadamard's matrix: entry (i, j) is -1 to the number of ones that i and j share in binary."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", np.int64, np.float64)


def walsh_hadamard(vector: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return the product of the matrix and a vector, or columns, of K entries, a power of 2, in O(K log K)."""
    half = 1
    while half < len(vector):
        pairs = vector.reshape(-1, 2, half, *vector.shape[1:])
        vector = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(vector.shape)
        half *= 2
    return vector
