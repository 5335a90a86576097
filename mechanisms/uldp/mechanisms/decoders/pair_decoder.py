"""The shares of keys, and the mean of the numbers that users hold with each, from counts of keys with signs.

Symbols are 2k signed keys and l dummies, of which a device holds l: see ``PairEncoding``. A key is held as often as
both of its symbols together, and its mean is the difference of both over this sum, mapped from [-1, 1] to the range.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.decoders.set_decoder import SetDecoder, SetErrors, SetLinear
from uldp.mechanisms.estimators.by_name import estimate_intermediate
from uldp.mechanisms.inference.forecast import draw_counts
from uldp.mechanisms.kernels.ratios import ratio_interval
from uldp.mechanisms.protocol.channel import Channel
from uldp.mechanisms.protocol.linear import normal
from uldp.mechanisms.protocol.mean_size import mean_size_table
from uldp.mechanisms.strings.candidate_decoder import FALSELY_FOUND
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.table import INTERVAL_LEVEL, Basis, Table, TableName


@dataclass(frozen=True, eq=False)
class PairErrors:
    """The errors of the sums and differences of both symbols of each key, at given shares of symbols.

    No device holds both symbols of a key, so the covariance of their supports is known exactly: a report has both with
    the probability b + (a-b)(r_+ + r_-), where a and b are those of ``Channel.pair_probabilities``.

    Attributes:
        channel: The channel of all symbols.
        r: Shape (2k + l,): the shares of the symbols, in [0, 1].
        reports: The number of reports.
    """

    channel: Channel
    r: Floats
    reports: int

    @property
    def _signed(self) -> SetErrors:
        return SetErrors(self.channel, self.r, self.reports, self.channel.size - self.channel.held)

    @cached_property
    def _variances(self) -> Floats:
        """Shape (k, 2): the variances of the symbols without and with a sign."""
        return self.channel.variance(self.r, self.reports)[: -self.channel.held].reshape(-1, 2)

    @cached_property
    def _covariance(self) -> Floats:
        """Shape (k,): the covariance of both symbols of each key."""
        a, b, _ = self.channel.pair_probabilities()
        of_keys, m = (
            each[: -self.channel.held].reshape(-1, 2) for each in (self.r, self.channel.support_probability(self.r))
        )
        both = b + (a - b) * of_keys.sum(axis=1)
        return np.asarray((both - m.prod(axis=1)) / (float(self.channel.gain[0]) ** 2 * self.reports))

    @property
    def variance(self) -> Floats:
        """Shape (k,): the variances of the sums, which are the shares of the keys."""
        return np.asarray(self._variances.sum(axis=1) + 2 * self._covariance)

    def times(self, w: Floats) -> Floats:
        """Return a product that bounds the variance of sums of shares; see ``SetErrors``.

        Both symbols of a key have one weight, so they count as what they are: never held together.
        """
        of_signed: Floats = self._signed.times(np.repeat(w, 2, axis=0))
        return np.asarray(of_signed.reshape(-1, 2, w.shape[1]).sum(axis=1))

    @property
    def of_differences(self) -> Floats:
        """Shape (k,): the variances of the differences."""
        return np.asarray(self._variances.sum(axis=1) - 2 * self._covariance)

    @property
    def of_both(self) -> Floats:
        """Shape (k,): the covariances of the sum and the difference of each key."""
        return np.asarray(self._variances[:, 1] - self._variances[:, 0])

    def most_of(self, other: "PairErrors") -> float:
        """Return the largest ratio of a variance to that of the same number in others.

        The numbers are all combinations of the share and the difference of a key, of which its mean has one, and the
        mean size. So for each key it is the largest root x of |A - x B|, where A and B are the covariances of its
        symbols.
        """
        (a, b), (of_a, of_b) = self._variances.T, other._variances.T
        both, of_both = self._covariance, other._covariance
        determinant = of_a * of_b - of_both**2
        half = (a * of_b + b * of_a - 2 * both * of_both) / (2 * determinant)
        product = (a * b - both**2) / determinant
        roots = half + np.sqrt(np.maximum(half**2 - product, 0.0))
        return max(float(roots.max()), self._signed.size_variance / other._signed.size_variance)


@dataclass(frozen=True, eq=False)
class PairLinear:
    """The unbiased estimate of the shares of keys; see ``Linear``.

    Attributes:
        signed: The unbiased estimate of the shares of their symbols, 2k of them.
    """

    signed: SetLinear

    def errors(self, channel: Channel) -> PairErrors:
        """Return the errors of reports by a channel, evaluated at these estimates, cut to [0, 1]."""
        return PairErrors(channel, np.clip(self.signed.all_values, 0.0, 1.0), self.signed.reports)

    @cached_property
    def own_errors(self) -> PairErrors:
        """The errors of these reports."""
        return self.errors(self.signed.channel)

    @property
    def values(self) -> Floats:
        """Shape (k,): the unbiased estimates of the shares of keys."""
        return of_keys(self.signed.values)

    @property
    def differences(self) -> Floats:
        """Shape (k,): those of the share with the sign less the share without it."""
        return np.asarray(np.diff(self.signed.values.reshape(-1, 2), axis=1)[:, 0])

    @property
    def variance(self) -> Floats:
        """Shape (k,): the variances of the shares."""
        return self.own_errors.variance

    @property
    def n(self) -> Counts:
        """Shape (k,): the number of all reports, for each key."""
        return np.full(len(self.values), self.signed.reports)

    def interval(self, coverage: float) -> tuple[Floats, Floats]:
        """Return normal intervals: the supports of two symbols have no binomial sum."""
        return normal(self.values, self.variance)(coverage)

    def times(self, w: Floats) -> Floats:
        """Return a product that bounds the variance of sums; see ``PairErrors``."""
        return self.own_errors.times(w)


def of_keys(signed: Floats) -> Floats:
    """Return the sum of both symbols of each key; shape (2k,) becomes (k,)."""
    return np.asarray(signed.reshape(-1, 2).sum(axis=1))


class PairDecoder(SetDecoder):
    """Reads support counts over 2k signed keys and l dummies.

    - ``share``: the share of users who report each key, with its interval.
    - ``p_value``: the probability of so large an estimate if nobody holds the key.
    - ``found``: 1 for the keys whose p-value is at most 0.05/k, so that any key that nobody holds is among them with a
      probability of 5 % at the most.
    - ``mean``: the mean number of each key that is found, over the users who report it, with Fieller's interval. The
      ratio of two unbiased estimates has a small bias. Of a key that is not found, no mean is published: its interval
      would be the whole range, and its value an accident of the noise.
    - ``mean_size``: the mean number of pairs that users report.

    Args:
        channel: The channel of all symbols.
        names: The names of the keys, k of them.
        low: The lower end of the range of numbers.
        high: The upper end.
        chance_support: See ``PureMechanism``.
        simultaneous: Whether all intervals of the shares are to cover the truth at once (Bonferroni), or each alone.
    """

    one = "key"

    def __init__(
        self,
        channel: Channel,
        names: Sequence[str],
        low: float,
        high: float,
        *,
        chance_support: float = 0.0,
        simultaneous: bool = False,
    ) -> None:
        super().__init__(channel, len(names), chance_support=chance_support, simultaneous=simultaneous)
        self.names, self.low, self.high = names, low, high

    def linear(self, cells: Counts, n: int) -> PairLinear:
        """Return the unbiased estimate of the shares of keys.

        Raises:
            ValueError: if ``n`` is not positive, or the cells do not fit.
        """
        return PairLinear(self._of_symbols(cells, n))

    @property
    def _symbols_text(self) -> str:
        return f"{self.items:,} keys of two signs each, and {self.channel.held:,} dummies"

    def tables(self, cells: Counts, n: int, estimator: str) -> tuple[Table, ...]:
        """Return the tables; see the class.

        Raises:
            ValueError: if ``n`` is not positive, the cells do not fit, or the decoder has no such estimator.
        """
        self.require(estimator)
        linear, k = self.linear(cells, n), self.items
        published = self._published(cells, n, estimator)
        low, high = linear.interval(1 - (1 - INTERVAL_LEVEL) / k if self.simultaneous else INTERVAL_LEVEL)
        share = Table(
            TableName.SHARE,
            published,
            np.sqrt(linear.variance),
            n,
            shape=(k,),
            unbiased=linear.values,
            low=low.clip(0.0, 1.0),
            high=high.clip(0.0, 1.0),
            basis=Basis.NORMAL,
            simultaneous=self.simultaneous,
        )
        p_values = self._p_values_of_keys(cells, n)
        found = p_values <= FALSELY_FOUND / k
        nothing = np.zeros(k)
        tables = [
            share,
            Table(TableName.P_VALUE, p_values, nothing, n, shape=(k,)),
            Table(TableName.FOUND, found.astype(np.float64), nothing, n, shape=(k,)),
        ]
        if found.any():
            tables.append(self._means(linear, np.flatnonzero(found), n))
        mean, variance = linear.signed.mean_size
        return *tables, mean_size_table(mean, variance, n, self.channel.held)

    def _published(self, cells: Counts, n: int, estimator: str) -> Floats:
        """Return the published shares of keys; but for those of ``empirical`` they do not exceed 1."""
        symbols = estimate_intermediate(estimator, self.channel, cells, n, self.channel.held)
        shares = of_keys(symbols[: -self.channel.held])
        return shares if estimator == "empirical" else np.minimum(shares, 1.0)

    def _p_values_of_keys(self, cells: Counts, n: int) -> Floats:
        """Return the probability of so many supports of each key, or more, if nobody holds it, shape (k,).

        A report supports both symbols of such a key seldomer than if it drew each alone, with q. So the sum of both
        counts has tails no heavier than those of 2n draws with q, at every n.
        """
        from scipy import special  # devices need no SciPy

        counts, q = cells[: -self.channel.held].reshape(-1, 2).sum(axis=1), float(self.channel.q[0])
        tails = special.betainc(np.maximum(counts, 1), 2 * n - counts + 1, q)
        return np.where(counts > 0, tails, 1.0)

    def _means(self, linear: PairLinear, keys: Counts, n: int) -> Table:
        """Return the means of some keys in the units of the range."""
        errors = linear.own_errors
        share, difference = linear.values[keys], linear.differences[keys]
        of_share, of_difference, of_both = (
            each[keys] for each in (errors.variance, errors.of_differences, errors.of_both)
        )
        z = NormalDist().inv_cdf((1 + INTERVAL_LEVEL) / 2)
        low, high = ratio_interval(difference, share, of_difference, of_share, of_both, z)
        ratio = difference / share
        # The variance of upper - rho lower at the estimate, over lower^2: the first order of that of the ratio.
        variance = (of_difference - 2 * ratio * of_both + ratio**2 * of_share) / share**2
        half = (self.high - self.low) / 2

        def number(sign: Floats) -> Floats:
            return self.low + half * (1 + sign.clip(-1.0, 1.0))

        return Table(
            TableName.MEAN,
            number(ratio),
            half * np.sqrt(np.maximum(variance, 0.0)),
            n,
            shape=(len(keys),),
            keys=tuple(self.names[key] for key in keys.tolist()),
            low=number(low),
            high=number(high),
            basis=Basis.NORMAL,
        )

    @property
    def weight(self) -> float:
        """See the base class; a report may support both symbols of a key."""
        return min(2, self.channel.supported) * super().weight

    def stderr(self, r: Floats, n: int) -> Floats:
        """See the base class; ``r`` is over symbols and dummies."""
        return np.sqrt(PairErrors(self.channel, r, n).variance)

    def simulate(self, r: Floats, n: int, estimator: str, rng: Generator) -> Floats:
        """See the base class; ``r`` is over symbols and dummies, and the errors are those of keys."""
        counts = draw_counts(self.channel, r, n, rng)
        return self._published(counts, n, estimator) - of_keys(r[: -self.channel.held])

    def symbol_shares(self, weights: Floats) -> Floats:
        """Return the shares of symbols of users with 0 to l pairs, each number alike, of keys with these weights.

        Half of the users of a key have each sign.
        """
        shares = super().symbol_shares(weights)
        return np.concatenate([np.repeat(shares[: self.items] / 2, 2), shares[self.items :]])
