"""The unbiased estimate from the reports of all parts of a pool; ``design`` has its formula."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np

from uldp.mechanisms.laws.channel_laws import ChannelLaw
from uldp.mechanisms.laws.estimate import Estimate, Part, joined
from uldp.mechanisms.pooling.design import Design
from uldp.schemas.arrays import Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class Pooled(Estimate):
    """Least squares over the estimates of independent parts.

    Attributes:
        estimates: The estimate of each part.
        weights: The weights of each part; see ``Design.weigh``.
        design: What each part estimates.
    """

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

    @property
    def weighted(self) -> Floats:
        """Shape (m,): A^T W y, all that least squares takes from the reports."""
        own = [each.values[:, np.newaxis] for each in self.estimates]
        return self.design.gather(self.design.weigh(self.weights, own))[:, 0]

    def at_shares(self, shares: Sequence[Floats]) -> Self:
        """Return the estimate with the errors of each part at shares that all parts together know better than it alone.

        Args:
            shares: Of each part, from 0 to 1 with the sum 1.
        """
        parts = [
            replace(part, theta=shares[number], whole=partial(np.asarray, shares[number]))
            for number, part in self.numbered()
        ]
        return replace(self, parts=tuple(parts))

    def in_parts(self, w: Floats) -> tuple[Floats, Floats, Floats]:
        """Return g, shape (M, j), d and h, with which sums with the weights ``w`` have the covariances g^T D g - h^T h.

        They take the covariances of parts as ``diagonal_and_rank_one`` does, and no transform.
        """
        assert self.onto is not None
        own, diagonal, means = self.onto.forward(w), np.zeros(len(self.stacked)), []
        for place, part in zip(self.places, self.parts, strict=True):
            at = slice(place, place + part.law.size)
            of_part, u = diagonal_and_rank_one(part)
            diagonal[at] += of_part
            means.append(u @ own[at])
        return own, diagonal, np.array(means)

    def numbered(self) -> Iterator[tuple[int, Part]]:
        """Yield the number of the estimate that each part of the errors is about, and the part."""
        first = np.cumsum([0, *(len(each.values) for each in self.estimates)])
        yield from zip(np.searchsorted(first, self.places, side="right") - 1, self.parts, strict=True)


def diagonal_and_rank_one(part: Part) -> tuple[Floats, Floats]:
    """Return d and u: sums of shares whose weights sum to 0 have the covariance diag(d) - u u^T.

    That is exact if a report supports one value, or a random set of them, and for independent bits. Of projective
    geometry, supports of values on one line depend on each other beyond that: the standard error of a single value is
    exact to 3 %, that of a sum of many may be a tenth too small.
    """
    assert isinstance(part.law, ChannelLaw)
    channel, r, factor = part.law.channel, part.distribution, part.factors[0]
    m, gain = channel.support_probability(r), channel.gain
    if channel.independent_bits:
        return factor * (m * (1 - m) / gain**2 + r**2), np.sqrt(factor) * r
    a, b, _ = channel.pair_probabilities() if channel.supported > 1 else (0.0, 0.0, 0.0)
    return factor * (m - b - 2 * (a - b) * r) / gain**2, np.sqrt(factor) * m / gain
