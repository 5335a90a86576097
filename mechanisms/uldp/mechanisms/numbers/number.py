"""Decoders of one number of a range."""

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from uldp.mechanisms.decoders.table_of import table_of
from uldp.mechanisms.protocol.decoder import Decoder, Pooling, two_digits
from uldp.schemas.arrays import Counts
from uldp.schemas.table import Table, TableName


class NumberDecoder(Decoder):
    """A decoder of one number in [low, high], whose ``linear`` is the mean.

    Attributes:
        low: Lower end of the range.
        high: Upper end.
    """

    low: float
    high: float
    estimators: tuple[str, ...] = ("auto", "empirical")
    pooling = Pooling.NUMBERS

    @property
    @abstractmethod
    def weight(self) -> float:
        """The distance of the least and the largest number that a possible report counts as, over that of the range."""

    def heaviest(self, table: Table) -> float | None:
        return self.weight * (self.high - self.low) if table.name is TableName.MEAN else None

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        percents = f"{100 * self.weight / n:.3g} % of the range, and 1 % of them by up to {self.weight:.3g} %"
        yield "heaviest", f"one forged report of {n:,} moves the mean by up to {percents}"
        yield "errors", f"of the mean at n = {n:,}, uniform values: {self.forecast(n)[0]:.3g}"

    def warnings(self, n: int, users: int, estimator: str) -> Iterator[str]:
        error, width = float(self.forecast(n)[0]), self.high - self.low
        if error > width / 10:
            yield (
                f"the expected error of the mean is {error:.3g} at n = {users:,}, in a range of {width:.3g}: take "
                f"{two_digits(users * (10 * error / width) ** 2):,} users or more in a window, or a larger epsilon"
            )

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        self.require(estimator)
        mean = self.linear(cells, n, repeats)
        return (table_of(TableName.MEAN, mean.values, mean, bounds=(-np.inf, np.inf)),)
