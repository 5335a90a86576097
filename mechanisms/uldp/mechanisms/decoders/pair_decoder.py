"""The shares of keys, and the mean of the numbers that users hold with each, from counts of keys with signs.

Symbols are 2k signed keys and l dummies, of which a device holds l: see ``PairEncoding``. A key is held as often as
both of its symbols together, and its mean is the difference of both over this sum, mapped from [-1, 1] to the range.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from uldp.mechanisms.decoders.set_decoder import SetDecoder
from uldp.mechanisms.decoders.table_of import FALSELY_FOUND, table_from
from uldp.mechanisms.laws.estimate import Estimate, part_of
from uldp.mechanisms.laws.held_laws import Keys
from uldp.mechanisms.laws.interval import Ends, ratio_interval
from uldp.mechanisms.laws.law import Cumulants
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.table import INTERVAL_LEVEL, Basis, Table, TableName


class PairDecoder(SetDecoder):
    """Reads support counts over 2k signed keys and l dummies.

    - ``share``: the share of users who report each key, with its interval.
    - ``p_value``: the probability of so large an estimate if nobody holds the key.
    - ``found``: 1 for the keys whose p-value is at most 0.05/k, so that any key that nobody holds is among them with a
      probability of 5 % at the most.
    - ``mean``: the mean number of each key that is found, over the users who report it. The ratio of two unbiased
      estimates has a small bias. Of a key that is not found, no mean is published: its interval would be the whole
      range, and its value an accident of the noise. Intervals of keys that are found for being large would cover too
      seldom. So they have the level 1 - .05 R/k, if R keys are found (Benjamini & Yekutieli, JASA 2005).
    - ``mean_size``: the mean number of pairs that users report.
    """

    one = "key"

    def __init__(self, mechanism: Mechanism, names: Sequence[str], low: float, high: float, **fields: Any) -> None:
        super().__init__(mechanism, len(names), **fields)
        self.keys, self.low, self.high = tuple(names), low, high

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        return self._sums(cells, n, np.arange(self.items), np.ones((self.items, 2)), repeats)

    def _sums(self, cells: Counts, n: int, keys: Counts, weights: Floats, repeats: float) -> Estimate:
        """Return the unbiased estimate of weighted sums of both symbols of some keys, with weights of shape (m, 2)."""
        response = None if self.response is None else self.response.channel
        signed, law = self.linear_of(cells, n), Keys(self.channel, weights, keys, response)
        values = (signed.values[: 2 * self.items].reshape(-1, 2)[keys] * weights).sum(axis=1)
        (part,) = signed.parts
        return Estimate(values, np.full(len(keys), n), (part_of(law, part.theta, n, part.whole),)).repeated(repeats)

    @property
    def _symbols_text(self) -> str:
        return f"{self.items:,} keys of two signs each, and {self.channel.held:,} dummies"

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        share, mean_size = super().tables(cells, n, estimator, repeats)
        p_values = self._p_values_of_keys(cells, n, repeats)
        found = p_values <= FALSELY_FOUND / self.items
        table = partial(Table, stderr=np.zeros(self.items), n=n, shape=share.shape)
        tables = [share, table(TableName.P_VALUE, p_values), table(TableName.FOUND, found.astype(np.float64))]
        if found.any():
            level = 1 - (1 - INTERVAL_LEVEL) * float(found.mean())
            tables.append(self.means(cells, n, np.flatnonzero(found), level, repeats))
        return *tables, mean_size

    def published(self, cells: Counts, n: int, estimator: str) -> Floats:
        """Return the published shares of keys; but for those of ``empirical`` they do not exceed 1."""
        shares = super().published(cells, n, estimator)
        return shares if estimator == "empirical" else np.minimum(shares, 1.0)

    def shares_of(self, r: Floats) -> Floats:
        return np.asarray(r[: 2 * self.items].reshape(-1, 2).sum(axis=1))

    def _p_values_of_keys(self, cells: Counts, n: int, repeats: float) -> Floats:
        """Return the probability of so many supports of each key, or more, if nobody holds it, shape (k,).

        A report supports both symbols of such a key seldomer than if it drew each alone, with q. So the sum of both
        counts has tails no heavier than those of 2n draws with q, at every n. Reports of devices that keep responses
        count as so many of different devices as have the variance of their mean.
        """
        from scipy import special  # devices need no SciPy

        counts, q = cells[: 2 * self.items].reshape(-1, 2).sum(axis=1), float(self.channel.q[0])
        once, part = self.linear(cells, n), np.ones(self.items)
        if repeats:
            kept = once.repeated(repeats).variance
            part = np.divide(once.variance, kept, out=part, where=kept > once.variance)
        tails = special.betainc(np.maximum(counts, 1) * part, (2 * n - counts) * part + 1, q)
        return np.where(counts > 0, tails, 1.0)

    def means(self, cells: Counts, n: int, keys: Counts, level: float, repeats: float = 0.0) -> Table:
        """Return the means of some keys in the units of the range, with intervals of this level."""
        share, difference, contrast = self._signed(cells, n, keys, repeats)
        ratio, half = (difference / share).clip(-1.0, 1.0), (self.high - self.low) / 2
        ends = ratio_interval(difference, share, contrast, level, (-1.0, 1.0))
        low, values, high = (self.low + half * (1 + each) for each in (ends[0], ratio, ends[1]))
        return table_from(
            TableName.MEAN,
            values,
            half * np.sqrt(contrast(ratio).variance) / share,
            (low, high),
            Basis.SCORE,
            bounds=(self.low, self.high),
            n=n,
            keys=tuple(self.keys[key] for key in keys.tolist()),
            level=level,
        )

    def _signed(
        self, cells: Counts, n: int, keys: Counts, repeats: float
    ) -> tuple[Floats, Floats, Callable[[Floats], Cumulants]]:
        """Return the sums and differences of both symbols of some keys, and cumulants of difference - v sum, by v."""

        def contrast(v: Floats) -> Estimate:
            return self._sums(cells, n, keys, np.stack([-1 - v, 1 - v], axis=1), repeats)

        least, most = (contrast(np.full(len(keys), v)).values for v in (-1.0, 1.0))
        return (least - most) / 2, (least + most) / 2, lambda v: contrast(v).cumulants

    def forged_ends(self, table: Table, cells: Counts, forged: float) -> Ends | None:
        """See the base class: a report moves the difference - v sum of a mean v by up to two symbols."""
        if table.name is not TableName.MEAN or table.low is None or table.high is None or table.keys is None:
            return super().forged_ends(table, cells, forged)
        places = {name: place for place, name in enumerate(self.keys)}
        keys = np.array([places[name] for name in table.keys])
        share, difference, contrast = self._signed(cells, table.n, keys, 0.0)
        moved = 2 * min(forged / table.n, 1.0) / float(self.channel.gain[0])
        honest, wider = (
            ratio_interval(difference, share, contrast, table.level, (-1.0, 1.0), each) for each in (0.0, moved)
        )
        half = (self.high - self.low) / 2
        return table.low - half * (honest[0] - wider[0]), table.high + half * (wider[1] - honest[1])

    @property
    def weight(self) -> float:
        return min(2, self.channel.supported) * super().weight

    def stderr(self, r: Floats, n: int) -> Floats:
        return np.sqrt(Keys(self.channel, np.ones((self.items, 2)), np.arange(self.items)).each(r).variance / n)

    def symbol_shares(self, weights: Floats) -> Floats:
        """Return symbol shares of users with 0 to l pairs, of keys by weight; half of a key have each sign."""
        shares = super().symbol_shares(weights)
        return np.concatenate([np.repeat(shares[: self.items] / 2, 2), shares[self.items :]])
