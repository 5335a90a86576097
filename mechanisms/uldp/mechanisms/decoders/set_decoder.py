"""The decoder of support counts of devices that hold several symbols: the share of users who hold each item of sets.

Symbols are k items and l dummies, of which a device holds l: see ``SetEncoding``. So the shares of all symbols sum to
l, and the dummies say how many items users report.
"""

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.decoders.pure import CountsDecoder
from uldp.mechanisms.decoders.table_of import table_of
from uldp.mechanisms.estimators.by_name import estimate_intermediate
from uldp.mechanisms.inference.forecast import LARGEST, equal_shares, falling_shares
from uldp.mechanisms.inference.forgery import forgery_text
from uldp.mechanisms.kernels.intervals import outside_p_value
from uldp.mechanisms.laws.estimate import Estimate, part_of
from uldp.mechanisms.laws.held_laws import MeanSize
from uldp.mechanisms.protocol.decoder import heaviest_fact, two_digits
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.specs.estimators import OF_COUNTS
from uldp.schemas.table import Table, TableName

# Forecasts are means of so many windows, or of fewer that have no more than ``LARGEST`` symbols in all.
_WINDOWS = 8


class SetDecoder(CountsDecoder):
    """Reads support counts over k items and l dummies.

    - ``share``: the share of users who report each item, with its interval. They do not sum to 1. Of users with more
      than l items, it is the part in which the item is among the l chosen ones.
    - ``mean_size``: the mean number of items that users report.

    The symbols of the mechanism are the items and the dummies; ``fields`` are the keywords of ``CountsDecoder``.
    """

    #: What the shares are of.
    one = "item"

    def __init__(self, mechanism: Mechanism, items: int, **fields: Any) -> None:
        pum = Pum(np.ones(items, dtype=np.bool_), (), np.zeros((0, items)), np.zeros(0))
        super().__init__(mechanism, pum, **fields)
        self.items, self.estimators = items, OF_COUNTS

    @property
    def _symbols_text(self) -> str:
        return f"{self.items:,} items and {self.channel.held:,} dummies"

    @cached_property
    def size_law(self) -> MeanSize:
        """The law of a report about the mean size."""
        return MeanSize(self.channel, None if self.response is None else MeanSize(self.response.channel))

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        """Return the unbiased estimate of the shares of items; for the errors of sums, see ``Held``."""
        return self.linear_of(cells, n).at(slice(0, self.items)).repeated(repeats)

    def mean_size(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        """Return the unbiased estimate of the mean number of items that users report."""
        dummies = self.linear_of(cells, n).values[-self.channel.held :]
        part = part_of(self.size_law, dummies.clip(0.0, 1.0), n)
        return Estimate(np.array([self.channel.held - dummies.sum()]), np.array([n]), (part,)).repeated(repeats)

    def size_table(self, cells: Counts, n: int, repeats: float) -> Table:
        """Return the table ``mean_size``."""
        size, bounds = self.mean_size(cells, n, repeats), (0.0, float(self.channel.held))
        return table_of(TableName.MEAN_SIZE, size.values.clip(*bounds), size, bounds=bounds)

    def test(self, supports: Counts, n: int) -> float | None:
        """See the base class; of hashes, counts are between binomial ones with q and p, whatever devices hold."""
        if not self.channel.independent_bits:
            return super().test(supports, n)
        return outside_p_value(supports, n, self.channel.q[:1], self.channel.p[:1]) if n > 0 else None

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        self.require(estimator)
        published = self.published(cells, n, estimator)
        linear = self.linear(cells, n, repeats)
        share = table_of(TableName.SHARE, published, linear, simultaneous=self.simultaneous)
        return share, self.size_table(cells, n, repeats)

    def published(self, cells: Counts, n: int, estimator: str) -> Floats:
        """Return the published shares of items, shape (k,)."""
        return self.shares_of(estimate_intermediate(estimator, self.channel, cells, n, self.channel.held))

    def heaviest(self, table: Table) -> float | None:
        return {TableName.SHARE: self.weight, TableName.MEAN_SIZE: self.size_law.reach}.get(table.name)

    def forecast(self, n: int) -> Floats:
        return self.stderr(self.symbol_shares(equal_shares(self.items)), n)

    def simulate(self, r: Floats, n: int, estimator: str, rng: Generator) -> Floats:
        """See the base class; ``r`` is over items and dummies, and the errors are those of items."""
        return self.published(self.draw_counts(r, n, rng), n, estimator) - self.shares_of(r)

    def shares_of(self, r: Floats) -> Floats:
        """Return the shares of items, shape (k,), of those of all symbols."""
        return r[: self.items]

    def symbol_shares(self, weights: Floats) -> Floats:
        """Return the shares of symbols of users with 0 to l items, each number alike, whose items have these weights.

        They are the shares of items, shape (k,), up to a factor; no share exceeds 1.
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

    def _error(self, r: Floats, n: int, estimator: str) -> float:
        """Return the root mean square error of a published share, of simulated windows."""
        windows = min(_WINDOWS, max(LARGEST // self.channel.size, 1))
        return self.errors(r, n, self.known(estimator), windows).l2 / math.sqrt(self.items)

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        channel = self.channel
        falling, equal = (self.symbol_shares(shares(self.items)) for shares in (falling_shares, equal_shares))
        yield "symbols", f"{self._symbols_text}: p {channel.p[0]:.6g}, q {channel.q[0]:.6g}"
        of_sets = f"{channel.supported:,} of them"
        has = f"one of {1 / channel.q[0]:,.0f} buckets of a hash" if channel.independent_bits else of_sets
        yield "reports", f"each has {has}; a device holds {channel.held:,}"
        yield "forged", forgery_text(channel, falling, n, self.mechanism.chance_support, self.test)
        yield heaviest_fact(self.weight, n)
        of_falling, of_equal = (self._error(r, n, estimator) for r in (falling, equal))
        rare = self.stderr(np.zeros(channel.size), n)[0]
        errors = (
            f"of {self.known(estimator)} at n = {n:,}, root mean square of a share, of users with"
            f" {channel.held / 2:g} {self.one}s each on the average: {of_falling:.3g} if shares fall as 1, 1/2,"
            f" 1/3, ..., {of_equal:.3g} if they are equal; standard error of the unbiased estimate of a rare"
            f" {self.one} {rare:.3g}"
        )
        yield "errors", errors

    def warnings(self, n: int, users: int, estimator: str) -> Iterator[str]:
        usual = min(self.channel.held / 2 / min(self.items, 10), 1.0)
        noise = float(self.stderr(np.zeros(self.channel.size), n)[0])
        if 2 * noise > usual:
            need = two_digits(users * (2 * noise / usual) ** 2)
            yield (
                f"the standard error of the share of one {self.one} is {noise:.3g} at n = {users:,}, more than half of"
                f" the share {usual:.2g} of a frequent one: take {need:,} users or more in a window, a smaller at_most,"
                " or a larger epsilon"
            )
