"""The laws of reports of a channel: independent bits, cells that support sets of symbols, and random sets of a size.

A report with the supports y adds a = u^T y - q^T G w to w^T r-hat, with the scores u of symbols and G as in
``Channel.scores``.
"""

from abc import abstractmethod
from collections.abc import Callable

import numpy as np

from uldp.mechanisms.laws.channel import Channel, Incidence
from uldp.mechanisms.laws.law import Cumulants, Law, largest_step, moments_of_mixture, of_points
from uldp.schemas.arrays import Floats


class ChannelLaw(Law):
    """The law of a report of a channel; theta is r, the distribution of true symbols."""

    def __init__(self, channel: Channel, response: Law | None = None) -> None:
        self.channel, self.size, self.response = channel, channel.size, response

    def each(self, theta: Floats) -> Cumulants:
        return self.channel.cumulants(theta)

    def constant(self, w: Floats) -> Floats:
        """Return q^T G w, which each report takes off, shape (j,)."""
        return np.asarray(self.channel.q @ (w / self.channel.gain[:, np.newaxis]))

    def one(self, w: Floats, theta: Floats) -> Cumulants:
        return self.of_scores(w, self.channel.scores(w), theta)

    @abstractmethod
    def of_scores(self, w: Floats, u: Floats, theta: Floats) -> Cumulants:
        """Return the cumulants of sums with the scores u of symbols."""

    def times(self, w: Floats, theta: Floats) -> Floats:
        return self.channel.covariance(theta)(w)

    def diagonal_and_rank_one(self, theta: Floats, factor: float | Floats) -> tuple[Floats, Floats]:
        """See the base class.

        That is exact if a report supports one value, or a random set of them, and for independent bits. Of projective
        geometry, supports of values on one line depend on each other beyond that: the standard error of a single value
        is exact to 3 %, that of a sum of many may be a tenth too small.
        """
        channel, m, gain = self.channel, self.channel.support_probability(theta), self.channel.gain
        if channel.independent_bits:
            return factor * (m * (1 - m) / gain**2 + theta**2), np.sqrt(factor) * theta
        a, b, _ = channel.pair_probabilities() if channel.supported > 1 else (0.0, 0.0, 0.0)
        return factor * (m - b - 2 * (a - b) * theta) / gain**2, np.sqrt(factor) * m / gain


class Bits(ChannelLaw):
    """Independent bits: of a true symbol x, the bit z is 1 with p_z if z is x, and with q_z otherwise."""

    def of_scores(self, w: Floats, u: Floats, theta: Floats) -> Cumulants:
        """See the base class: a mixture over x of sums of independent bits; who holds none of Z has noise alone."""
        p, q = self.channel.p[:, np.newaxis], self.channel.q[:, np.newaxis]
        of_others, of_own = q * (1 - q), p * (1 - p)
        variance = (u**2 * of_others).sum(axis=0) + u**2 * (of_own - of_others)
        cubes = of_others * (1 - 2 * q)
        third = (u**3 * cubes).sum(axis=0) + u**3 * (of_own * (1 - 2 * p) - cubes)
        components, others = [(theta[:, np.newaxis], w, variance, third)], np.atleast_2d(1 - theta.sum())
        if others > 1e-12:
            noise = (u**2 * of_others).sum(axis=0), (u**3 * cubes).sum(axis=0)
            components.append((others, np.zeros(1), *noise))
        return moments_of_mixture(components, theta @ w)


class OneSymbol(ChannelLaw):
    """A report supports one symbol; a report that supports none is in one more cell."""

    def of_scores(self, w: Floats, u: Floats, theta: Floats) -> Cumulants:
        m = self.channel.support_probability(theta)
        nothing = 1 - m.sum()
        if nothing > 1e-12:
            m, u = np.append(m, nothing), np.vstack([u, np.zeros(u.shape[1])])
        found = of_points(m[:, np.newaxis], u - self.constant(w))
        mean = m @ u
        centred = u[: self.size] - mean
        noise, own = self.channel.q, self.channel.gain[:, np.newaxis]
        silent = np.maximum(1 - noise.sum() - own, 0.0)
        square, cube = (noise @ centred**k + own * centred**k + silent * (-mean) ** k for k in (2, 3))
        return found._replace(step=largest_step(square, cube))


class Payloads(ChannelLaw):
    """A report is one of many payloads, each of which supports a set of symbols.

    Of a true symbol that noise supports, a payload has one of two probabilities, the larger one if it supports it.
    ``law`` gives the probability of each payload, shape (payloads,), if true symbols are distributed as ``r``.
    """

    def __init__(
        self,
        channel: Channel,
        incidence: Incidence,
        law: Callable[[Floats], Floats],
        payloads: int,
        response: Law | None = None,
    ) -> None:
        super().__init__(channel, response)
        self._incidence, self._law, self._payloads = incidence, law, payloads

    @property
    def numbers(self) -> int:
        return self._payloads

    def of_scores(self, w: Floats, u: Floats, theta: Floats) -> Cumulants:
        law = self._law(theta)[:, np.newaxis]
        a = self._incidence.supported(u) - self.constant(w)
        centred = a - law.T @ a
        return of_points(law, a)._replace(step=largest_step(*map(self._given, (centred**2, centred**3))))

    def _given(self, numbers: Floats) -> Floats:
        """Return the mean of numbers of payloads, given each true symbol; shape (cells, j) becomes (|Z|, j)."""
        noisy = self.channel.q > 0
        holding = self._incidence.supports(np.ones((self._payloads, 1)))[:, 0]
        others = self._payloads - int((~noisy).sum())
        likelier = self.channel.p * others / holding  # than a uniform payload
        slope = np.where(noisy, (likelier - 1) / (others - holding), self.channel.p)[:, np.newaxis]
        level = np.where(noisy, (self.channel.p - slope[:, 0] * holding) / holding, (1 - self.channel.p) / others)
        return np.asarray(np.outer(level, numbers[:others].sum(axis=0)) + slope * self._incidence.supports(numbers))

    def times(self, w: Floats, theta: Floats) -> Floats:
        """See the base class: the payloads are multinomial."""
        law = self._law(theta)[:, np.newaxis]
        a = self._incidence.supported(self.channel.scores(w))
        return self.channel.of_supports(self._incidence.supports(law * (a - law.T @ a)))


class Subsets(ChannelLaw):
    """A report supports w of the v sensitive symbols, or names one symbol that is not sensitive.

    From behind a sensitive symbol it has this one with p, and then w - 1 of the others, else w of them, each set with
    the same probability. From behind another symbol it names this one with p, and else has any w symbols.
    """

    def of_scores(self, w: Floats, u: Floats, theta: Floats) -> Cumulants:
        """See the base class; sums over random subsets of a finite population have known moments."""
        channel, inside = self.channel, self.channel.q > 0
        middle = u[inside].mean(axis=0)
        centred, chosen, mean = u[inside] - middle, channel.supported, theta @ w + self.constant(w)
        p, r = channel.p[inside][:, np.newaxis], theta[inside][:, np.newaxis]
        size = len(centred)
        powers = [(centred**power).sum(axis=0) for power in (1, 2, 3)]
        others = [total - centred**power for power, total in zip((1, 2, 3), powers, strict=True)]
        with_own = _of_subset(others, size - 1, chosen - 1)
        without = _of_subset(others, size - 1, chosen)
        shift = chosen * middle - mean
        parts = [(r * p, with_own[0] + centred + shift, *with_own[1:]), (r * (1 - p), without[0] + shift, *without[1:])]
        if not inside.all():
            free, named, nothing = theta[~inside][:, np.newaxis], channel.named, np.zeros(1)
            any_set = _of_subset(powers, size, chosen)
            parts += [
                (free * named, u[~inside] - mean, nothing, nothing),
                (free.sum(keepdims=True) * (1 - named), any_set[0] + shift, *any_set[1:]),
            ]
        return moments_of_mixture(parts, np.zeros(u.shape[1]))


def _of_subset(powers: list[Floats], size: int, chosen: int) -> tuple[Floats, Floats, Floats]:
    """Return the mean, variance and third central moment of a sum over a uniform subset of a population.

    Source: the moments of a total of a simple random sample without replacement, as in Cochran, "Sampling Techniques"
    (1977), section 2.15 and exercise 2.14.
    """
    mean = powers[0] / size
    second = np.maximum(powers[1] / size - mean**2, 0.0)
    third = powers[2] / size - 3 * mean * powers[1] / size + 2 * mean**3
    spread = chosen * (size - chosen) / max(size - 1, 1)
    return chosen * mean, spread * second, spread * (size - 2 * chosen) / max(size - 2, 1) * third


class Held(ChannelLaw):
    """Reports of devices that hold several symbols; see ``Channel.held``.

    The covariance of two symbols depends on the share of devices that hold both, which no count shows. So the variance
    of a sum is a bound: a report that has one held symbol is as probable as one that has two, so common holders make
    the variance of sums smaller, and of differences larger. Of weights of one sign it takes no device to hold both, and
    of two signs as many as hold the rarer. The third cumulant of a sum has no closed form; it is taken as that of
    symbols that are supported independently.
    """

    def of_scores(self, w: Floats, u: Floats, theta: Floats) -> Cumulants:
        variance = np.maximum((w * self.times(w, theta)).sum(axis=0), 0.0)
        third = self.each(theta).third @ w**3
        step = np.sqrt(variance + (w**2).max(axis=0))
        none = np.full(w.shape[1], np.nan)
        return Cumulants(variance, third, step, none, none)

    def times(self, w: Floats, theta: Floats) -> Floats:
        """See the base class. The product is for the variance of w alone, which it bounds."""
        a, b, _ = self.channel.pair_probabilities()
        common = of_other_sign(theta, w)
        if self.channel.held > 1:  # of which the covariance takes them as held independently
            common = common + theta[:, np.newaxis] ** 2 * w - np.outer(theta, theta @ w)
        return np.asarray(super().times(w, theta) - (a - b) / self.channel.gain[0] ** 2 * common)


def of_other_sign(r: Floats, w: Floats) -> Floats:
    """Return sum_j min(r_i, r_j) w_j over the j whose weight has another sign than that of i; shape of w, (k, sums).

    It is what devices that may hold two items add to the errors of sums of their shares, at the most: no more users
    hold both i and j than hold the rarer one. ``r``, shape (k,), are the shares of holders of each item.
    """
    order = np.argsort(r, kind="stable")
    ascending, place = r[order][:, np.newaxis], np.argsort(order)

    def of_minimum(weights: Floats) -> Floats:
        sorted_weights = weights[order]
        smaller = np.cumsum(ascending * sorted_weights, axis=0)
        larger = sorted_weights.sum(axis=0) - np.cumsum(sorted_weights, axis=0)
        return np.asarray((smaller + ascending * larger)[place], dtype=np.float64)

    if not ((w > 0).any(axis=0) & (w < 0).any(axis=0)).any():
        return np.zeros_like(w)
    return np.where(w > 0, of_minimum(np.minimum(w, 0.0)), np.where(w < 0, of_minimum(np.maximum(w, 0.0)), 0.0))


def law_of(channel: Channel, response: Law | None = None) -> ChannelLaw:
    """Return the law of a report of a channel."""
    if channel.held > 1:
        return Held(channel, response)
    if channel.blocks is not None:
        return Payloads(channel, channel.blocks, channel.blocks.law, channel.blocks.cells, response)
    if channel.independent_bits:
        return Bits(channel, response)
    return (OneSymbol if channel.supported == 1 else Subsets)(channel, response)
