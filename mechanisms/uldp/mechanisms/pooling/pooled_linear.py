"""How the parts of a pool depend on what is estimated: each estimates a linear function of the same values.

Let x be the m values, and y_s the unbiased estimates of part s, so E[y_s] = A_s x. With weights W_s, which are the
inverses of the parts' variances or near them, the pooled estimate is that of least squares over all parts,

    x-hat = c + (A^T W A)^-1 A^T W (y - A c)

where c is known beforehand. No weights make it biased; the inverses of the covariances give it the least variance
(Gauss and Markov).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Self

import numpy as np

from uldp.mechanisms.laws.estimate import Estimate, Part, joined
from uldp.schemas.arrays import Floats

#: Gives (A^T W A)^-1 g for g of shape (m, j).
Solve = Callable[[Floats], Floats]


class Design(ABC):
    """A, of m = ``size`` values, as products without the matrix. All arrays are of shape (..., j)."""

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
        """Return the product with (A^T W A)^-1, W as of ``weigh``; of values with a known sum, on sums of 0."""

    @abstractmethod
    def nearest(self, weights: Sequence[Floats] | Floats, values: Floats) -> Floats:
        """Return the values x, shape (m,), of shares of 0 or more that are nearest to what all parts say.

        It is the minimum of (A x - y)^T W (A x - y) under A x >= 0, which the unbiased estimate of ``values`` has
        instead of y: what differs is the same for all x.
        """

    def weigh(self, weights: Sequence[Floats] | Floats, of_parts: Sequence[Floats]) -> list[Floats]:
        """Return W y. Weights are diagonal here: of each part one number, shape (), or one an entry, shape (m_s,)."""
        return [np.atleast_1d(weight)[:, np.newaxis] * own for weight, own in zip(weights, of_parts, strict=True)]


@dataclass(frozen=True, eq=False, kw_only=True)
class Pooled(Estimate):
    """Least squares over the estimates of independent parts, with the weights of ``Design.weigh``."""

    estimates: Sequence[Estimate]
    weights: Sequence[Floats] | Floats
    design: Design

    @classmethod
    def of(cls, estimates: Sequence[Estimate], weights: Sequence[Floats] | Floats, design: Design) -> Self:
        """Pool estimates.

        A sum with the weights w takes W A (A^T W A)^-1 w of the parts. Weights W must not depend on the counts: a count
        that is low by chance has a low variance too, and would pull the estimate down.
        """
        solve, whole = design.solve(weights), joined(estimates)
        ends = np.cumsum([len(each.values) for each in estimates])[:-1]

        def forward(w: Floats) -> Floats:
            return np.concatenate(design.weigh(weights, design.spread(solve(w))))

        def back(moved: Floats) -> Floats:
            return solve(design.gather(design.weigh(weights, np.split(moved, ends))))

        centre = design.centre[:, np.newaxis]
        values = (centre + back(whole.values[:, np.newaxis] - np.concatenate(design.spread(centre))))[:, 0]
        found = whole.mapped(values, forward, back)
        n = np.full(design.size, sum(int(each.n[0]) for each in estimates))
        return cls(
            values,
            n,
            found.parts,
            found.onto,
            found.stacked,
            found.places,
            estimates=estimates,
            weights=weights,
            design=design,
        )

    @cached_property
    def nearest(self) -> Floats:
        """Shape (m,): the values of shares of 0 or more that are nearest to what all parts say."""
        return self.design.nearest(self.weights, self.values)

    def at_shares(self, shares: Sequence[Floats]) -> Self:
        """Return the estimate with the errors of each part at shares that all parts know better."""
        parts = [
            replace(part, theta=shares[number], whole=partial(np.asarray, shares[number]))
            for number, part in self.numbered()
        ]
        return replace(self, parts=tuple(parts))

    def in_parts(self, w: Floats) -> tuple[Floats, Floats, Floats]:
        """Return g, (M, j), d and h: sums with weights ``w`` have the covariances g^T D g - h^T h, as below."""
        assert self.onto is not None
        own, diagonal, means = self.onto.forward(w), np.zeros(len(self.stacked)), []
        for place, part in zip(self.places, self.parts, strict=True):
            at = slice(place, place + part.law.size)
            of_part, u = part.diagonal_and_rank_one()
            diagonal[at] += of_part
            means.append(u @ own[at])
        return own, diagonal, np.array(means)

    def numbered(self) -> Iterator[tuple[int, Part]]:
        """Yield the number of the estimate that each part of the errors is about, and the part."""
        first = np.cumsum([0, *(len(each.values) for each in self.estimates)])
        yield from zip(np.searchsorted(first, self.places, side="right") - 1, self.parts, strict=True)
