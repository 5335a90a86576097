"""The decoder of support counts of devices that hold several symbols: the share of users who hold each item of sets.

Symbols are k items and l dummies, of which a device holds l: see ``SetEncoding``. So the shares of all symbols sum to
l, and the dummies say how many items users report.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.estimators.by_name import estimate_intermediate
from uldp.mechanisms.inference.forecast import LARGEST, draw_counts, forecast_errors
from uldp.mechanisms.inference.forgery import forgery_text
from uldp.mechanisms.kernels.common_holders import of_other_sign
from uldp.mechanisms.kernels.intervals import outside_p_value
from uldp.mechanisms.protocol.channel import Channel
from uldp.mechanisms.protocol.decoder import SharesDecoder, heaviest_fact, require_reports, two_digits
from uldp.mechanisms.protocol.linear import Linear
from uldp.mechanisms.protocol.mean_size import mean_size_table
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.specs.estimators import OF_COUNTS
from uldp.schemas.table import INTERVAL_LEVEL, Basis, Table, TableName

# Forecasts are means of so many windows, or of fewer that have no more than ``LARGEST`` symbols in all.
_WINDOWS = 8


@dataclass(frozen=True, eq=False)
class SetErrors:
    """The errors of an unbiased estimate of the shares of items, at given shares of symbols.

    The covariance of two items depends on the share of users who hold both, which no count shows. ``variance`` is
    exact. ``times`` is for ``w @ times(w)``, which is the variance of the sum with the weights w, or more: a report
    that has one held symbol is as probable as one that has two, so common holders make the variance of sums smaller,
    and of differences larger. So of weights of one sign it takes no user to hold both, and of two signs as many as hold
    the rarer.

    Attributes:
        channel: The channel of all symbols.
        r: Shape (k + l,): the shares of items and dummies, in [0, 1].
        reports: The number of reports.
        items: k.
    """

    channel: Channel
    r: Floats
    reports: int
    items: int

    @property
    def variance(self) -> Floats:
        """Shape (k,): the variances of the shares of items."""
        return self.channel.variance(self.r, self.reports)[: self.items]

    def times(self, w: Floats) -> Floats:
        """Return the product of the bound with w; see the class."""
        r = self.r[: self.items]
        m, gain = self.channel.support_probability(self.r)[: self.items], float(self.channel.gain[0])
        a, b, _ = self.channel.pair_probabilities()
        sums = w.sum(axis=0)
        product = (m - b - 2 * (a - b) * r)[:, np.newaxis] * w + b * sums
        product += (a - b) * (np.outer(r, sums) + r @ w) - np.outer(m, m @ w)
        product -= (a - b) * of_other_sign(r, w)
        return np.asarray(product / (gain**2 * self.reports), dtype=np.float64)

    @property
    def size_variance(self) -> float:
        """The variance of the mean number of items that users report.

        Who holds a dummy holds all dummies before it, so the share of devices that hold two is known.
        """
        m, gain = self.channel.support_probability(self.r)[self.items :], float(self.channel.gain[0])
        dummies = self.r[self.items :]
        a, b, _ = self.channel.pair_probabilities()
        moments = b + (a - b) * np.maximum.outer(dummies, dummies)
        np.fill_diagonal(moments, m)
        return max(float(moments.sum() - m.sum() ** 2), 0.0) / (gain**2 * self.reports)

    def most_of(self, other: "SetErrors") -> float:
        """Return the largest ratio of a variance to that of the same number in others: of an item, or the mean size."""
        return max(float((self.variance / other.variance).max()), self.size_variance / other.size_variance)


@dataclass(frozen=True, eq=False)
class SetLinear:
    """The unbiased estimate of the shares of items; see ``Linear``, and ``SetErrors`` for its errors.

    Attributes:
        channel: The channel of all symbols.
        cells: Shape (k + l,): their support counts.
        reports: The number of reports.
        items: k.
    """

    channel: Channel
    cells: Counts
    reports: int
    items: int

    @cached_property
    def all_values(self) -> Floats:
        """Shape (k + l,): the unbiased estimates of the shares of items and dummies."""
        return self.channel.unbiased(self.cells, self.reports)

    @property
    def values(self) -> Floats:
        """Shape (k,): the unbiased estimates of the shares of items."""
        return self.all_values[: self.items]

    def errors(self, channel: Channel) -> SetErrors:
        """Return the errors of reports by a channel, evaluated at these estimates, cut to [0, 1]."""
        return SetErrors(channel, np.clip(self.all_values, 0.0, 1.0), self.reports, self.items)

    @cached_property
    def own_errors(self) -> SetErrors:
        """The errors of these reports."""
        return self.errors(self.channel)

    @property
    def variance(self) -> Floats:
        """Shape (k,): see ``SetErrors``."""
        return self.own_errors.variance

    @property
    def n(self) -> Counts:
        """Shape (k,): the number of all reports, for each item."""
        return np.full(self.items, self.reports)

    def interval(self, coverage: float) -> tuple[Floats, Floats]:
        """Return Clopper and Pearson's intervals; see ``Channel.confidence_interval``."""
        low, high = self.channel.confidence_interval(self.cells, self.reports, coverage)
        return low[: self.items], high[: self.items]

    def times(self, w: Floats) -> Floats:
        """Return a product that bounds the variance of sums; see ``SetErrors``."""
        return self.own_errors.times(w)

    @property
    def mean_size(self) -> tuple[float, float]:
        """The mean number of items that users report, and its variance."""
        return self.channel.held - float(self.all_values[self.items :].sum()), self.own_errors.size_variance


class SetDecoder(SharesDecoder):
    """Reads support counts over k items and l dummies.

    - ``share``: the share of users who report each item, with its interval. They do not sum to 1. Of users with more
      than l items, it is the part in which the item is among the l chosen ones.
    - ``mean_size``: the mean number of items that users report.

    Args:
        channel: The channel of all symbols.
        items: k.
        chance_support: See ``PureMechanism``.
        simultaneous: Whether all intervals of the shares are to cover the truth at once (Bonferroni), or each alone.
    """

    estimators = OF_COUNTS
    #: What the shares are of.
    one = "item"

    def __init__(
        self, channel: Channel, items: int, *, chance_support: float = 0.0, simultaneous: bool = False
    ) -> None:
        self.channel, self.items, self.simultaneous = channel, items, simultaneous
        self._chance_support = chance_support

    @cached_property
    def pum(self) -> Pum:
        """The items, of which none has a tag."""
        return Pum(np.ones(self.items, dtype=np.bool_), (), np.zeros((0, self.items)), np.zeros(0))

    def check(self, cells: Counts, n: int) -> None:
        """Raise ValueError if no n reports give these cells."""
        if cells.shape != (self.channel.size,):
            raise ValueError(f"the cells have shape {cells.shape}, but there are {self.channel.size} symbols")
        if cells.min() < 0 or cells.max() > n:
            raise ValueError(f"no {n} reports have counts from {cells.min()} to {cells.max()}")
        if not self.channel.independent_bits and cells.sum() != n * self.channel.supported:
            raise ValueError(
                f"each of n = {n} reports supports {self.channel.supported} different symbols, but the counts sum to"
                f" {cells.sum()}, from {cells.min()} to {cells.max()}"
            )

    @property
    def _symbols_text(self) -> str:
        return f"{self.items:,} items and {self.channel.held:,} dummies"

    def linear(self, cells: Counts, n: int) -> Linear:
        """Return the unbiased estimate of the shares of items.

        Raises:
            ValueError: if ``n`` is not positive, or the cells do not fit.
        """
        return self._of_symbols(cells, n)

    def _of_symbols(self, cells: Counts, n: int) -> SetLinear:
        """Return the unbiased estimate of the shares of all symbols that are no dummies."""
        require_reports(n)
        self.channel.check(cells, n)
        return SetLinear(self.channel, cells, n, self.channel.size - self.channel.held)

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Test whether any sets explain the support counts."""
        p_value = self.test(cells, n)
        return {} if p_value is None else {Flag.IMPROBABLE_COUNTS: p_value}

    def test(self, cells: Counts, n: int) -> float | None:
        """Return the p-value of support counts, or None if n is too small for it; see ``fit_counts``.

        Of hashes, a count is between binomial ones with q and p whatever devices hold, which Bonferroni's bound tests.
        """
        if self.channel.independent_bits:
            p, q = self.channel.p[:1], self.channel.q[:1]
            return outside_p_value(cells, n, q, p) if n > 0 else None
        from uldp.mechanisms.inference.plausibility import counts_p_value  # needs SciPy, and devices need none

        return counts_p_value(self.channel, cells, n) if n > 0 else None

    def tables(self, cells: Counts, n: int, estimator: str) -> tuple[Table, ...]:
        """Return the tables ``share`` and ``mean_size``.

        Raises:
            ValueError: if ``n`` is not positive, the cells do not fit, or the decoder has no such estimator.
        """
        self.require(estimator)
        linear, k = self._of_symbols(cells, n), self.items
        published = estimate_intermediate(estimator, self.channel, cells, n, self.channel.held)
        low, high = linear.interval(1 - (1 - INTERVAL_LEVEL) / k if self.simultaneous else INTERVAL_LEVEL)
        share = Table(
            TableName.SHARE,
            published[:k],
            np.sqrt(linear.variance),
            n,
            shape=(k,),
            unbiased=linear.values,
            low=low.clip(0.0, 1.0),
            high=high.clip(0.0, 1.0),
            basis=Basis.EXACT,
            simultaneous=self.simultaneous,
        )
        mean, variance = linear.mean_size
        return share, mean_size_table(mean, variance, n, self.channel.held)

    def heaviest(self, table: Table) -> float | None:
        """See the base class; known of the shares of items."""
        return self.weight if table.name is TableName.SHARE else None

    @property
    def weight(self) -> float:
        """See the base class."""
        return float(1 / self.channel.gain[0])

    def forecast(self, n: int) -> Floats:
        """Return the standard errors of the shares of items at n reports of uniform sets, shape (k,)."""
        return self.stderr(self.symbol_shares(np.ones(self.items)), n)

    def stderr(self, r: Floats, n: int) -> Floats:
        """See the base class; ``r`` is over items and dummies."""
        return np.sqrt(self.channel.variance(r, n))[: self.items]

    def simulate(self, r: Floats, n: int, estimator: str, rng: Generator) -> Floats:
        """See the base class; ``r`` is over items and dummies, and the errors are those of items."""
        counts = draw_counts(self.channel, r, n, rng)
        estimate = estimate_intermediate(estimator, self.channel, counts, n, self.channel.held)
        return (estimate - r)[: self.items]

    def symbol_shares(self, weights: Floats) -> Floats:
        """Return the shares of symbols of users with 0 to l items, each number alike, whose items have these weights.

        Args:
            weights: Shape (k,): the shares of items, up to a factor; no share exceeds 1.
        """
        held = self.channel.held
        shares, total = np.zeros(self.items), held / 2
        free = np.ones(self.items, dtype=np.bool_)
        # Shares above 1 become 1, and the others take what is left.
        while True:
            shares[free] = weights[free] * (total - (~free).sum()) / weights[free].sum()
            above = free & (shares > 1)
            if not above.any():
                break
            shares[above], free = 1.0, free & ~above
        return np.concatenate([shares, np.arange(held, 0, -1) / (held + 1)])

    def _falling(self) -> Floats:
        weights = 1 / np.arange(1, self.items + 1)
        return self.symbol_shares(np.random.default_rng(17).permutation(weights))

    def _error(self, r: Floats, n: int, estimator: str) -> float:
        """Return the root mean square error of a published share, of simulated windows."""
        windows = min(_WINDOWS, max(LARGEST // self.channel.size, 1))
        return forecast_errors(self, r, n, self.known(estimator), windows).l2 / math.sqrt(self.items)

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        """Yield p and q, the size of a report, and what n reports can do."""
        channel, k = self.channel, self.items
        yield "symbols", f"{self._symbols_text}: p {channel.p[0]:.6g}, q {channel.q[0]:.6g}"
        of_sets = f"{channel.supported:,} of them"
        has = f"one of {1 / channel.q[0]:,.0f} buckets of a hash" if channel.independent_bits else of_sets
        yield "reports", f"each has {has}; a device holds {channel.held:,}"
        yield "forged", forgery_text(channel, self._falling(), n, self._chance_support, self.test)
        yield heaviest_fact(self.weight, n)
        falling, equal = (self._error(r, n, estimator) for r in (self._falling(), self.symbol_shares(np.ones(k))))
        rare = self.stderr(np.zeros(channel.size), n)[0]
        yield (
            "errors",
            (
                f"of {self.known(estimator)} at n = {n:,}, root mean square of a share, of users with"
                f" {channel.held / 2:g} {self.one}s each on the average: {falling:.3g} if shares fall as 1, 1/2, 1/3,"
                f" ..., {equal:.3g} if they are equal; standard error of the unbiased estimate of a rare {self.one}"
                f" {rare:.3g}"
            ),
        )

    def warnings(self, n: int, users: int, estimator: str) -> Iterator[str]:
        """Yield a line if the noise of an item is larger than the largest shares are likely to be; see ``Decoder``."""
        usual = min(self.channel.held / 2 / min(self.items, 10), 1.0)
        noise = float(self.stderr(np.zeros(self.channel.size), n)[0])
        if 2 * noise > usual:
            need = two_digits(users * (2 * noise / usual) ** 2)
            yield (
                f"the standard error of the share of one {self.one} is {noise:.3g} at n = {users:,}, more than half of"
                f" the share {usual:.2g} of a frequent one: take {need:,} users or more in a window, a smaller at_most,"
                " or a larger epsilon"
            )
