"""The law of one report: what it adds to a linear function of unbiased estimates, as exact cumulants.

An unbiased estimate of m parameters theta is the mean over n reports y of a vector with the mean theta. So the sum
w^T theta-hat is the mean of a score a(y), and its cumulants are those of one score, over n, n^2, ...
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np

from uldp.schemas.arrays import Floats, Mask


class Cumulants(NamedTuple):
    """The errors of some sums of unbiased estimates, or of what one report adds to them; each of shape (j,)."""

    variance: Floats  # the second cumulant, V
    third: Floats  # the third cumulant, which is the third central moment, K
    step: Floats  # J, the largest step of one user; see ``largest_step``
    low: Floats  # the lower one of two scores, if a report has no third one; otherwise NaN
    high: Floats  # likewise, the upper one

    @property
    def exact(self) -> Mask:
        """Shape (j,): whether a report has one of two scores, so that a sum counts reports."""
        return ~np.isnan(self.low)

    def scaled(self, factor: Floats) -> Self:
        """Return the cumulants of the sums times some numbers, shape (j,)."""
        low, high = np.where(factor < 0, (self.high, self.low), (self.low, self.high)) * factor
        return type(self)(self.variance * factor**2, self.third * factor**3, self.step * np.abs(factor), low, high)


def of_points(probability: Floats, scores: Floats) -> Cumulants:
    """Return the cumulants of scores (points, j), or (points, 1), with probabilities (points, j)."""
    mean = (probability * scores).sum(axis=0)
    centred = scores - mean
    square = probability * centred**2
    least, most = scores.min(axis=0), scores.max(axis=0)
    two = ((scores == least) | (scores == most)).all(axis=0)
    low, high = (np.where(two, each, np.nan) for each in (least, most))
    return Cumulants(square.sum(axis=0), (square * centred).sum(axis=0), np.abs(centred).max(axis=0), low, high)


def chained(parts: Iterable[Cumulants]) -> Cumulants:
    """Return the cumulants of several groups of sums, one behind the other."""
    return Cumulants(*map(np.concatenate, zip(*parts, strict=True)))


#: So many numbers are in the arrays of one product.
NUMBERS = 1 << 22


class Law(ABC):
    """The law of one report, at any parameters that the caller names."""

    size: int  # m, the number of parameters
    #: The law of the response that a device keeps, from which it draws reports; None if devices keep none, or if the
    #: law is not known: reports of one device are then taken to be the same.
    response: "Law | None" = None

    @property
    def numbers(self) -> int:
        """How many numbers a column of weights becomes, such as one for each payload."""
        return self.size

    @abstractmethod
    def each(self, theta: Floats) -> Cumulants:
        """Return the cumulants of each parameter alone, shape (m,), or of rows of several windows."""

    @abstractmethod
    def one(self, w: Floats, theta: Floats) -> Cumulants:
        """Return the cumulants of the sums with the weights ``w``, of shape (m, j)."""

    @abstractmethod
    def times(self, w: Floats, theta: Floats) -> Floats:
        """Return Cov @ w, of shape (m, j)."""

    def diagonal_and_rank_one(self, theta: Floats, factor: float | Floats) -> tuple[Floats, Floats]:
        """Return d and u: sums of shares whose weights sum to 0 have the covariance diag(d) - u u^T, times ``factor``.

        NotImplementedError if the parameters are no shares.
        """
        raise NotImplementedError("the parameters of this law are no shares of values")

    def sums(self, w: Floats, theta: Floats, alone: Floats | None = None) -> Cumulants:
        """Return ``one``, some columns at a time; a sum of one parameter alone is as ``each`` has it, at ``alone``."""
        at_once = max(NUMBERS // max(self.numbers, 1), 1)
        parts = [self.one(w[:, first : first + at_once], theta) for first in range(0, w.shape[1], at_once)]
        sums = parts[0] if len(parts) == 1 else chained(parts)
        single: Mask = np.count_nonzero(w, axis=0) == 1
        if not single.any():
            return sums
        at = np.argmax(w != 0, axis=0)
        each = Cumulants(*(number[at] for number in self.each(theta if alone is None else alone)))
        pairs = zip(each.scaled(w[at, np.arange(w.shape[1])]), sums, strict=True)
        return Cumulants(*(np.where(single, *pair) for pair in pairs))


def moments_of_mixture(components: Sequence[tuple[Floats, Floats, Floats, Floats]], centre: Floats) -> Cumulants:
    """Return the cumulants of a mixture around its mean ``centre``, shape (j,); it is no law of two scores.

    There are groups of components, each with the probability, the mean, the variance and the third central moment of
    each, of shapes that broadcast to (components, j). The probabilities of all groups sum to 1.
    """
    rows = zip(*(np.broadcast_arrays(*each) for each in components), strict=True)
    probability, mean, variance, third = map(np.concatenate, rows)
    moved = mean - centre
    square, cube = variance + moved**2, third + (3 * variance + moved**2) * moved
    none = np.full(moved.shape[1], np.nan)
    variance, skewed = ((probability * each).sum(axis=0) for each in (square, cube))
    return Cumulants(variance, skewed, largest_step(square, cube), none, none)


def largest_step(square: Floats, cube: Floats) -> Floats:
    """Return J: the largest step of a user, whose reports alone would have the skewness of steps of this size.

    A user whose reports have a large score seldom, and else none, moves a sum by this score, which is the ratio of the
    third moment to the second one. Where noise hides the score, it is the root mean square. By true symbol, shape
    (users, j), ``square`` is the mean of squared scores less the mean score, and ``cube`` that of their cubes.
    """
    ratio = np.abs(cube) / np.where(square > 0, square, 1.0)
    return np.asarray(np.maximum(np.sqrt(square), ratio).max(axis=0))


class Outputs(Law):
    """The law of the scores of one of some outputs.

    The largest step is the score that is the farthest from its mean, for each output has noise. ``scores``, shape
    (m, outputs), are what each output counts as in the unbiased estimates; ``law`` gives the probability of each
    output, shape (outputs,), at the parameters theta.
    """

    def __init__(self, scores: Floats, law: Callable[[Floats], Floats]) -> None:
        self.size, self._scores, self._law = len(scores), scores, law

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
