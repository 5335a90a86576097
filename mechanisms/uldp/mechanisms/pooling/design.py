"""How the parts of a pool depend on what is estimated: each estimates a linear function of the same values.

Let x be the m values, and y_s the unbiased estimates of part s, so E[y_s] = A_s x. With weights W_s, which are the
inverses of the parts' variances or near them, the pooled estimate is that of least squares over all parts,

    x-hat = c + (A^T W A)^-1 A^T W (y - A c)

where c is known beforehand. No weights make it biased; the inverses of the covariances give it the least variance
(Gauss and Markov).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from uldp.schemas.arrays import Floats

#: Gives (A^T W A)^-1 g for g of shape (m, j).
Solve = Callable[[Floats], Floats]


class Design(ABC):
    """A, as products without the matrix. Columns are independent: all arrays are of shape (..., j).

    Attributes:
        size: m, the number of values.
    """

    size: int

    @property
    def centre(self) -> Floats:
        """Shape (m,): c. A design whose values have a known sum has c of this sum, and keeps it in ``solve``."""
        return np.zeros(self.size)

    @abstractmethod
    def spread(self, values: Floats) -> list[Floats]:
        """Return A x: for x of shape (m, j), that of part s has shape (m_s, j)."""

    @abstractmethod
    def gather(self, of_parts: Sequence[Floats]) -> Floats:
        """Return A^T y, of shape (m, j): the transpose of ``spread``."""

    @abstractmethod
    def solve(self, weights: Sequence[Floats] | Floats) -> Solve:
        """Return the product with (A^T W A)^-1; of values with a known sum, with its inverse on sums of 0.

        Args:
            weights: Of each part, what ``weigh`` takes.
        """

    def weigh(self, weights: Sequence[Floats] | Floats, of_parts: Sequence[Floats]) -> list[Floats]:
        """Return W y. Weights are diagonal here: of each part one number, shape (), or one an entry, shape (m_s,)."""
        return [np.atleast_1d(weight)[:, np.newaxis] * own for weight, own in zip(weights, of_parts, strict=True)]


class Same(Design):
    """Each part estimates the values themselves: levels of privacy, versions, or two arms of one number."""

    def __init__(self, size: int, parts: int) -> None:
        self.size, self._parts = size, parts

    def spread(self, values: Floats) -> list[Floats]:
        """Return the values for each part."""
        return [values] * self._parts

    def gather(self, of_parts: Sequence[Floats]) -> Floats:
        """Return the sum over the parts."""
        total: Floats = np.sum(of_parts, axis=0)
        return total

    def solve(self, weights: Sequence[Floats] | Floats) -> Solve:
        """Return the division by the sums of the weights."""
        total = np.sum([np.broadcast_to(weight, self.size) for weight in weights], axis=0)[:, np.newaxis]
        return lambda g: g / total
