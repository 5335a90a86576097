"""Unbiased estimates that are linear in the cells, with the laws of the reports behind them.

An estimate has independent parts, each of n_g reports with a law of their own: the levels of a tree, the views of a
record, versions, windows. A sum over its values is a sum over the parameters of the parts. Cumulants of independent
parts add up:

    V = sum kappa_2,g / n_g        K = sum kappa_3,g / n_g^2        J = max J_g / n_g
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from uldp.mechanisms.laws.interval import Ends, exact_interval, p_value, score_interval
from uldp.mechanisms.laws.law import Cumulants, Law, chained
from uldp.schemas.arrays import Counts, Floats, Reports, Rows

# Cumulants of all values take a column of weights for each; so many numbers are in these at once.
_NUMBERS = 1 << 21


@dataclass(frozen=True, eq=False)
class Part:
    """Reports of one law, and how they enter the cumulants of an estimate."""

    law: Law
    theta: Floats  # shape (m_g,): the parameters at which single ones have their errors, within their range
    reports: Reports  # n_g; of rows of several windows a column
    #: Gives theta for sums, shape (m_g,): one that is possible as a whole, such as a distribution.
    whole: Callable[[], Floats]
    #: The numbers by which kappa_2, kappa_3 and J are multiplied: 1/n_g, 1/n_g^2 and 1/n_g for reports.
    factors: tuple[float | Floats, float | Floats, float | Floats]
    adds: bool = True  # whether the part adds to the values; a covariance of two windows does not

    @cached_property
    def distribution(self) -> Floats:
        """Shape (m_g,): theta for sums."""
        return self.whole()

    def diagonal_and_rank_one(self) -> tuple[Floats, Floats]:
        """Return ``Law.diagonal_and_rank_one`` at theta for sums, of the mean over the reports."""
        return self.law.diagonal_and_rank_one(self.distribution, self.factors[0])

    def of_response(self, factors: Iterable[float | Floats]) -> "Part":
        """Return a part that changes the errors alone, by those of the response that a device keeps, if it is known."""
        variance, third, step = factors
        return replace(self, law=self.law.response or self.law, factors=(variance, third, step), adds=False)

    def each(self) -> Cumulants:
        """Return what the part adds to the cumulants of each of its parameters, shape (m_g,)."""
        return self._scaled(self.law.each(self.theta))

    def sums(self, w: Floats) -> Cumulants:
        """Return what the part adds to the cumulants of sums with the weights ``w``, of shape (m_g, j)."""
        return self._scaled(self.law.sums(w, self.distribution, self.theta))

    def times(self, w: Floats) -> Floats:
        """Return its Cov @ w."""
        return np.asarray(self.factors[0] * self.law.times(w, self.distribution))

    def _scaled(self, one: Cumulants) -> Cumulants:
        variance, third, step = self.factors
        return one._replace(variance=one.variance * variance, third=one.third * third, step=one.step * step)


def part_of(law: Law, theta: Floats, n: Reports, whole: Callable[[], Floats] | None = None) -> Part:
    """Return the part of n reports."""
    of_mean = 1 / np.asarray(n, dtype=np.float64)
    return Part(law, theta, n, whole or (lambda: theta), (of_mean, of_mean**2, of_mean))


class Onto(NamedTuple):
    """How sums over values are sums over the parameters of the parts: a linear map and its transpose."""

    #: Weights of values, shape (m, j), become those of parameters, shape (M, j), of all parts in turn.
    forward: Callable[[Floats], Floats]
    back: Callable[[Floats], Floats]  # the transpose
    single: bool = False  # whether no value has two parameters of a part


@dataclass(frozen=True, eq=False)
class Estimate:
    """Unbiased estimates of m numbers.

    Attributes:
        values: Shape (m,): the estimates; of one part, there may be rows of several windows.
        n: Shape (m,): the number of reports behind each.
        parts: The parts, each independent of the others.
        onto: How values are made of parameters; None if they are those of the only place of parameters.
        stacked: Shape (M,): the unbiased estimates of the parameters of all places in turn.
        places: Of each part, the first of its parameters in ``stacked``.
    """

    values: Floats
    n: Counts
    parts: tuple[Part, ...]
    onto: Onto | None = None
    stacked: Floats = field(default_factory=lambda: np.zeros(0))
    places: tuple[int, ...] = (0,)

    @cached_property
    def cumulants(self) -> Cumulants:
        """The cumulants of each value, shape (m,)."""
        if self.onto is None and len(self.parts) == 1:
            return self.parts[0].each()
        if self.onto is None:
            return _added(self.values.shape, [(slice(None), part.each()) for part in self.parts])
        m = len(self.values)
        if self.onto.single:
            singles = [(self._singles(place, part.law.size), part.each()) for place, part in self._placed]
            of_values = [(at, Cumulants(*(own[rows] for own in of)).scaled(by)) for (at, rows, by), of in singles]
            return _added(self.values.shape, of_values)
        at_once = max(_NUMBERS // max(len(self.stacked), m), 1)
        columns = [np.eye(m, min(at_once, m - first), -first) for first in range(0, m, at_once)]
        return chained(map(self.sums, columns))

    @property
    def variance(self) -> Floats:
        """Shape (m,): the variances of the values."""
        return self.cumulants.variance

    def sums(self, w: Floats) -> Cumulants:
        """Return the cumulants of the sums with the weights ``w``, of shape (m, j)."""
        pairs = list(zip(self.parts, self._own(w), strict=True))
        if len(pairs) == 1:
            return pairs[0][0].sums(pairs[0][1])
        used = ((part, own, np.flatnonzero((own != 0).any(axis=0))) for part, own in pairs)
        return _added(w.shape[1:], [(at, part.sums(own[:, at])) for part, own, at in used if len(at)])

    def variance_of(self, w: Floats) -> Floats:
        """Return the variances of the sums with the weights ``w``, of shape (m, j)."""
        return self.sums(w).variance

    def times(self, w: Floats) -> Floats:
        """Return Cov @ w, for w of shape (m, j), without the matrix of covariances."""
        total = np.zeros((len(self._stacked), w.shape[1]))
        for (place, part), own in zip(self._placed, self._own(w), strict=True):
            total[place : place + part.law.size] += part.times(own)
        return self._back(total)

    def interval(self, coverage: float, w: Floats | None = None, more: float | Floats = 0.0) -> Ends:
        """Return intervals of the values, or of sums, that cover each alone with this probability, not cut to a range.

        The sums have the weights ``w``, shape (m, j). ``more``, a number or of shape (j,), is the variance of an
        independent error of each, such as of what is assumed.
        """
        values, cumulants = (self.values, self.cumulants) if w is None else (self.values @ w, self.sums(w))
        return self.ends(values, cumulants, coverage, w, more)

    def ends(
        self, values: Floats, cumulants: Cumulants, coverage: float, w: Floats | None = None, more: float | Floats = 0.0
    ) -> Ends:
        """Return ``interval``, for values or sums and their cumulants."""
        exact = cumulants.exact & (np.asarray(more) == 0)
        if exact.all():
            return self._exact(w, values, cumulants, coverage)
        ends = score_interval(values, cumulants._replace(variance=cumulants.variance + more), coverage)
        if not exact.any():
            return ends
        pairs = zip(self._exact(w, values, cumulants, coverage), ends, strict=True)
        low, high = (np.where(exact, *pair) for pair in pairs)
        return low, high

    def p_values(self, w: Floats | None = None) -> Floats:
        """Return two-sided p-values of values, or of sums, whose mean is 0; see ``p_value``."""
        return p_value(self.values, self.cumulants) if w is None else p_value(self.values @ w, self.sums(w))

    def _exact(self, w: Floats | None, values: Floats, cumulants: Cumulants, coverage: float) -> Ends:
        """Return exact intervals of sums that count one event of one part, and any numbers of others."""
        if self.onto is None and len(self.parts) == 1:
            return exact_interval(values, cumulants, self.parts[0].reports, coverage)
        own, n = np.zeros(len(values)), np.ones(len(values))
        for part, at, of_part in self.sums_of_parts(w):
            own[at], n[at] = of_part, part.reports
        low, high = exact_interval(own, cumulants, n, coverage)
        return low + values - own, high + values - own

    def sums_of_parts(self, w: Floats | None) -> Iterator[tuple[Part, Rows, Floats]]:
        """Yield each part of reports, which values or sums have weights there, and the sums of these parameters."""
        if w is None and self._single:
            for place, part in self._placed:
                if part.adds:
                    values, rows, weights = self._singles(place, part.law.size)
                    yield part, values, weights * self._stacked[place + rows]
            return
        owns = self._own(np.eye(len(self.values)) if w is None else w)
        for (place, part), own in zip(self._placed, owns, strict=True):
            if part.adds:
                used = np.flatnonzero((own != 0).any(axis=0))
                yield part, used, self._stacked[place : place + len(own)] @ own[:, used]

    def _own(self, w: Floats) -> list[Floats]:
        """Return the weights of the parameters of each part."""
        moved = self._forward(w)
        return [moved[place : place + part.law.size] for place, part in self._placed]

    def _forward(self, w: Floats) -> Floats:
        return w if self.onto is None else self.onto.forward(w)

    def _back(self, moved: Floats) -> Floats:
        return moved if self.onto is None else self.onto.back(moved)

    @property
    def _single(self) -> bool:
        return self.onto is None or self.onto.single

    def mapped(
        self,
        values: Floats,
        forward: Callable[[Floats], Floats],
        back: Callable[[Floats], Floats],
        *,
        single: bool = False,
    ) -> "Estimate":
        """Return an estimate of linear functions of these values, which are ``values``, shape (k,).

        By ``forward`` their weights, shape (k, j), become weights of these values, shape (m, j); ``back`` is the
        transpose. They are ``single`` if no function has two parameters of a part, where no value of this has.
        """
        onto = Onto(lambda w: self._forward(forward(w)), lambda moved: back(self._back(moved)), single and self._single)
        n = np.full(len(values), int(np.max(self.n)))
        return Estimate(values, n, self.parts, onto, self._stacked, self.places)

    def at(self, place: slice | Rows) -> "Estimate":
        """Return some of the values, each once, such as one table of several."""
        m = len(self.values)

        def forward(w: Floats) -> Floats:
            wide = np.zeros((m, w.shape[1]))
            wide[place] = w
            return wide

        taken = self.mapped(self.values[place], forward, lambda moved: moved[place], single=True)
        return replace(taken, n=self.n[place])

    def _singles(self, place: int, size: int) -> tuple[Rows, Rows, Floats]:
        """Return the values that have one of so many parameters of a place, which one, and the multiple that they are.

        No value may have two of them. Each array has the shape (k,), and no multiple is 0.
        """
        probe = np.zeros((len(self._stacked), 2))
        probe[place : place + size] = np.column_stack([np.ones(size), np.arange(size)])
        weights, moved = self._back(probe).T
        values = np.flatnonzero(weights)
        return values, np.rint(moved[values] / weights[values]).astype(np.int64), weights[values]

    @property
    def _stacked(self) -> Floats:
        return self.values if self.onto is None else self.stacked

    def repeated(self, repeats: float) -> Self:
        """Return the estimate of windows whose devices may be the same, and keep their responses.

        Two reports of a device are drawn from one response, and are independent given this. So the mean of T reports of
        each of n devices has the cumulants kappa_2 / (n T) + (T - 1) kappa_2' / (n T), and
        kappa_3 / (n T)^2 + (T^2 - 1) kappa_3' / (n T)^2, with those of a report from the permanent response alone.
        ``repeats`` is T - 1, in how many other windows the device of a report has another.
        """
        if not repeats:
            return self
        by = repeats, repeats * (repeats + 2), repeats + 1
        more = (
            part.of_response((own * each for own, each in zip(part.factors, by, strict=True))) for part in self.parts
        )
        return self._with(more, self.places)

    def under(self, common: "Estimate") -> "Estimate":
        """Return the estimate with its errors at the parameters of another one, which has parts about the same places.

        So two windows have errors as if nothing differed. If the other one has other parts, the errors stay.
        """
        at = {place: part for place, part in zip(common.places, common.parts, strict=True) if part.adds}
        if set(at) != set(self.places) or any(part.law.size != at[place].law.size for place, part in self._placed):
            return self
        parts = [replace(part, theta=at[place].theta, whole=at[place].whole) for place, part in self._placed]
        return replace(self, parts=tuple(parts))

    @property
    def _placed(self) -> Sequence[tuple[int, Part]]:
        return list(zip(self.places, self.parts, strict=True))

    def _with(self, more: Iterable[Part], places: Sequence[int]) -> Self:
        """Return the estimate with parts that change its errors alone; each is about the parameters of a place."""
        return replace(self, parts=(*self.parts, *more), places=(*self.places, *places))

    def of_responses(self) -> "Estimate":
        """Return the estimate as if each report were the response of its device, without the noise on top."""
        kept = [(place, replace(part, law=part.law.response or part.law)) for place, part in self._placed if part.adds]
        return replace(self, parts=tuple(part for _, part in kept), places=tuple(place for place, _ in kept))

    def less(self, other: "Estimate") -> "Estimate":
        """Return the differences from independent estimates of the same numbers."""
        return weighted([self, other], np.array([1.0, -1.0])[:, np.newaxis])

    def less_dependent(self, other: "Estimate", shared: Callable[[float, float], float]) -> "Estimate":
        """Return the differences from estimates of the same numbers by the same devices, which keep their responses.

        The other estimates have parts about the same places. ``shared`` gives the number by which the variance of a
        response is multiplied in the covariance of two parts, from the numbers of their reports.
        """
        difference, at = self.less(other), dict(other._placed)
        known = [
            (place, part)
            for place, part in difference._placed[: len(self.parts)]
            if part.adds and part.law.response is not None and place in at
        ]
        times = [shared(float(np.max(part.reports)), float(np.max(at[place].reports))) for place, part in known]
        more = (part.of_response((-2 * each, 0.0, 0.0)) for (_, part), each in zip(known, times, strict=True))
        return difference._with(more, [place for place, _ in known])


def joined(estimates: Sequence[Estimate]) -> Estimate:
    """Return independent estimates, one behind the other."""
    ends = np.cumsum([len(each.values) for each in estimates])
    sizes = np.cumsum([len(each._stacked) for each in estimates])

    def forward(w: Floats) -> Floats:
        pairs = zip(estimates, np.split(w, ends[:-1]), strict=True)
        return np.concatenate([each._forward(own) for each, own in pairs])

    def back(moved: Floats) -> Floats:
        pairs = zip(estimates, np.split(moved, sizes[:-1]), strict=True)
        return np.concatenate([each._back(own) for each, own in pairs])

    return Estimate(
        np.concatenate([each.values for each in estimates]),
        np.concatenate([np.broadcast_to(each.n, each.values.shape) for each in estimates]),
        tuple(part for each in estimates for part in each.parts),
        Onto(forward, back, all(each._single for each in estimates)),
        np.concatenate([each._stacked for each in estimates]),
        tuple(
            int(first) + place for first, each in zip((0, *sizes[:-1]), estimates, strict=True) for place in each.places
        ),
    )


def weighted(estimates: Sequence[Estimate], weights: Floats) -> Estimate:
    """Return sums of independent estimates of the same numbers, with weights (estimates, m) or (estimates, 1)."""
    whole = joined(estimates)
    values = np.sum([weight * each.values for weight, each in zip(weights, estimates, strict=True)], axis=0)

    def forward(w: Floats) -> Floats:
        return np.concatenate([weight[:, np.newaxis] * w for weight in weights])

    def back(moved: Floats) -> Floats:
        pairs = zip(weights, np.split(moved, len(weights)), strict=True)
        return np.asarray(np.sum([weight[:, np.newaxis] * own for weight, own in pairs], axis=0))

    # Each value has the parameters of its own in all estimates, which are parts of their own.
    found = whole.mapped(values, forward, back, single=True)
    n = np.sum([np.broadcast_to(each.n, each.values.shape) for each in estimates], axis=0)
    return replace(found, n=n)


def _added(shape: tuple[int, ...], parts: Sequence[tuple[Rows | slice, Cumulants]]) -> Cumulants:
    """Add cumulants of independent parts, each with the sums that it adds to; two scores stay so in one part."""
    added, parts_of = Cumulants(*np.zeros((5, *shape))), np.zeros(shape, dtype=np.int64)
    for at, found in parts:
        for total, of_part in zip(added, found, strict=True):
            total[at] = np.maximum(total[at], of_part) if total is added.step else total[at] + of_part
        parts_of[at] += 1
    low, high = (np.where(parts_of == 1, each, np.nan) for each in (added.low, added.high))
    return added._replace(variance=np.maximum(added.variance, 0.0), low=low, high=high)
