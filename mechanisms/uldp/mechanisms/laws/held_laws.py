"""The laws of what follows from held symbols: the mean size of sets, and the shares of keys of two signs."""

import numpy as np

from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.laws.channel_laws import Held
from uldp.mechanisms.laws.law import Cumulants, Law, of_points
from uldp.schemas.arrays import Counts, Floats


class MeanSize(Law):
    """The law of a report about the mean number of held items, which is l less the dummies that a device holds.

    Of a device that holds d of the l dummies, a report supports x of them with the probability

        A F(l, x) - (A - 1) F'(l - d, x)

    where F(m, x) is that of x among m dummies if no symbol is likelier than another, and F' likewise of a report that
    supports no held symbol. Of w of D symbols, both are hypergeometric, F' over the D - l others, and A is p D/w: a set
    with a held symbol has A times its share of all sets. Of hashes both are binomial with q, and A is p/q: a bucket
    that is hit is A times as probable.

    The channel is that of all symbols, of which the last l are the dummies; theta is the shares of these. Who holds a
    dummy holds all before it, so theta falls.
    """

    size = 1

    def __init__(self, channel: Channel, response: Law | None = None) -> None:
        held, symbols, w = channel.held, channel.size, channel.supported
        p, q = float(channel.p[0]), float(channel.q[0])
        x, not_held = np.arange(held + 1.0)[:, np.newaxis], np.arange(held, -1.0, -1.0)
        if channel.independent_bits:
            times, of_all, of_others = p / q, binomial(held, x, q), binomial(not_held, x, q)
        else:
            times, of_all = p * symbols / w, _hypergeometric(symbols, held, w, x)
            of_others = _hypergeometric(symbols - held, not_held, w, x)
        given = np.asarray(times * of_all - (times - 1) * of_others).clip(0.0)
        possible = given.any(axis=1)
        self.response, self._given = response, given[possible]
        self._scores = held - (x[possible] - held * q) / channel.gain[0]

    @property
    def reach(self) -> float:
        """The difference of the largest and the least score of a report."""
        return float(np.ptp(self._scores))

    def each(self, theta: Floats) -> Cumulants:
        shares = -np.diff(np.sort(theta)[::-1], prepend=1.0, append=0.0)
        return of_points((self._given @ shares)[:, np.newaxis], self._scores)

    def one(self, w: Floats, theta: Floats) -> Cumulants:
        return Cumulants(*(np.repeat(each, w.shape[1]) for each in self.each(theta))).scaled(w[0])

    def times(self, w: Floats, theta: Floats) -> Floats:
        return np.asarray(self.each(theta).variance * w)


class Keys(Held):
    """The law of a report about keys, each of two symbols that no device holds both: of weighted sums of their shares.

    The channel is that of all symbols: those of keys in pairs, and behind them the dummies; theta is their shares. The
    weights of both symbols of each key, shape (m, 2), are 1 and 1 for its share.
    """

    def __init__(self, channel: Channel, weights: Floats, keys: Counts, response: Channel | None = None) -> None:
        super().__init__(channel, None if response is None else Keys(response, weights, keys))
        self.size, self._weights, self._keys = len(keys), weights, keys

    def each(self, theta: Floats) -> Cumulants:
        """See the base class: a report supports none of both symbols, one, or both, unless it has one symbol alone."""
        channel, (one, other) = self.channel, self._weights.T
        (r, s), (m, k) = (self._signed(each) for each in (theta, channel.support_probability(theta)))
        a, b, _ = channel.pair_probabilities()
        both = b + (a - b) * (r + s)
        scores = np.stack([np.zeros(self.size), one, other, one + other]) - channel.q[0] * (one + other)
        points = 3 if channel.supported == 1 and not channel.independent_bits else 4
        probability = np.stack([1 - m - k + both, m - both, k - both, both])
        return of_points(probability[:points].clip(0.0), scores[:points] / channel.gain[0])

    def one(self, w: Floats, theta: Floats) -> Cumulants:
        return self.of_scores(w, w, theta)

    def times(self, w: Floats, theta: Floats) -> Floats:
        wide = np.zeros((self.channel.size // 2, 2, w.shape[1]))
        wide[self._keys] = self._weights[:, :, np.newaxis] * w[:, np.newaxis]
        symbols = np.zeros((self.channel.size, w.shape[1]))
        symbols[: 2 * len(wide)] = wide.reshape(-1, w.shape[1])
        moved = super().times(symbols, theta)
        return np.asarray((self._signed(moved) * self._weights.T[:, :, np.newaxis]).sum(axis=0))

    def _signed(self, symbols: Floats) -> Floats:
        """Return the numbers of both symbols of each key, shape (2, m, ...)."""
        pairs = symbols[: 2 * (len(symbols) // 2)].reshape(-1, 2, *symbols.shape[1:])[self._keys]
        return np.asarray(np.moveaxis(pairs, 1, 0))


def _log_choose(n: Floats | float, k: Floats | float) -> Floats:
    """Return the logarithm of C(n, k), which is -inf where that is 0."""
    from scipy import special  # takes a quarter of a second, and devices need none

    return np.asarray(special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0))


def binomial(n: Floats | float, x: Floats, q: float) -> Floats:
    """Return the probability of x successes in n trials, each with about 10 digits."""
    from scipy import special

    return np.asarray(np.exp(_log_choose(n, x) + special.xlogy(x, q) + special.xlog1py(n - x, -q)))


def _hypergeometric(size: int, marked: Floats | float, chosen: int, x: Floats) -> Floats:
    """Return the probability of x marked ones among those chosen."""
    of_sets = _log_choose(marked, x) + _log_choose(size - marked, chosen - x)
    return np.asarray(np.exp(of_sets - _log_choose(size, chosen)))
