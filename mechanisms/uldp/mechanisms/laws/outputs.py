"""The law of a report that is one of some outputs, each of which has a score for each parameter."""

from collections.abc import Callable

import numpy as np

from uldp.mechanisms.laws.cumulants import Cumulants, chained, of_points
from uldp.mechanisms.laws.law import NUMBERS, Law
from uldp.schemas.arrays import Floats


class Outputs(Law):
    """The law of the scores of one of some outputs.

    The largest step is the score that is the farthest from its mean, for each output has noise.

    Args:
        scores: Shape (m, outputs): what each output counts as in the unbiased estimates.
        law: Gives the probability of each output, shape (outputs,), at the parameters theta.
    """

    def __init__(self, scores: Floats, law: Callable[[Floats], Floats], response: Law | None = None) -> None:
        self.size, self.response = len(scores), response
        self._scores, self._law = scores, law

    @property
    def numbers(self) -> int:
        return int(self._scores.shape[1])

    def each(self, theta: Floats) -> Cumulants:
        law = self._law(theta)[:, np.newaxis]
        pieces = -(-self._scores.size // NUMBERS)
        return chained(of_points(law, rows.T) for rows in np.array_split(self._scores, pieces))

    def one(self, w: Floats, theta: Floats) -> Cumulants:
        return of_points(self._law(theta)[:, np.newaxis], self._scores.T @ w)

    def times(self, w: Floats, theta: Floats) -> Floats:
        """See the base class: the outputs are multinomial."""
        law, scores = self._law(theta)[:, np.newaxis], self._scores.T @ w
        return np.asarray(self._scores @ (law * (scores - (law * scores).sum(axis=0))))
