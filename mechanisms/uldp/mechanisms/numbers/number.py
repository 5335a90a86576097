"""Numbers of a range: their encoding as points of a grid, and the table of their mean."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from uldp.mechanisms.protocol.decoder import Decoder, two_digits
from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.linear import Linear
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.schemas.arrays import Counts, Floats, Symbols
from uldp.schemas.table import INTERVAL_LEVEL, Basis, Table, TableName

#: ``NumberEncoding`` divides the range into at most 2^52 parts, which a float counts exactly.
_PART_BITS = 52


@dataclass(frozen=True)
class NumberEncoding(Encoding):
    """Rounds numbers in [low, high] to the points of a grid, at random and without bias.

    A number between two points becomes the upper one with the probability of its distance from the lower one, in steps.
    So the mean of the symbols, mapped back, is the number itself, up to 2^-51 of the range. Numbers outside of
    [low, high] become its nearest end first.

    Rounding is before the mechanism, so it spends no epsilon: the law of a report is a mixture of the laws for two
    symbols, and a mechanism bounds the ratio of any two of these.

    Attributes:
        low: The number of symbol 0.
        high: The number of symbol ``grid``.
        grid: The number of steps, 1 to 2^16. The symbols are 0, ..., grid.
    """

    low: float
    high: float
    grid: int

    def __post_init__(self) -> None:
        check_range(self.low, self.high)
        if not 1 <= self.grid <= 1 << 16:
            raise ValueError(f"a grid has 1 to 2^16 steps, got {self.grid}")

    def law(self, columns: Sequence[Held], size: int) -> Floats:
        """Return the probabilities of the two points around a number; see ``Encoding``."""
        parts, bits = self._parts(columns)
        below, rest = divmod(int(parts[0]), 1 << bits)
        r = np.zeros(size)
        r[below] = 1 - rest / (1 << bits)
        r[min(below + 1, self.grid)] += rest / (1 << bits)
        return r

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Symbols:
        """Return the symbol of each number, shape (n,). Draws n integers, whatever the numbers.

        Raises:
            ValueError: if a number is infinite or NaN, or a user wants to hide it behind a tag.
        """
        parts, bits = self._parts(columns)
        return (parts + randomness.integers(0, 1 << bits, len(parts))) >> bits

    def device_form(self) -> DeviceForm:
        """See ``Encoding``."""
        bits = _PART_BITS - (self.grid - 1).bit_length()
        return {"form": "grid", "low": self.low, "high": self.high, "grid": self.grid, "bits": bits}

    def _parts(self, columns: Sequence[Held]) -> tuple[Symbols, int]:
        """Return the place of each number in parts of a step, of which a step has 2^bits, and the bits."""
        inside = np.clip(finite_numbers(columns), self.low, self.high)
        # A step of the grid has 2^bits parts. The random integer carries the part to the next step that often.
        bits = _PART_BITS - (self.grid - 1).bit_length()
        parts = np.rint((inside - self.low) / (self.high - self.low) * (self.grid << bits)).astype(np.int64)
        return parts, bits


class NumberDecoder(Decoder):
    """A decoder of one number in [low, high], whose ``linear`` is the mean.

    Attributes:
        low: Lower end of the range.
        high: Upper end.
    """

    low: float
    high: float

    @property
    @abstractmethod
    def weight(self) -> float:
        """The distance of the least and the largest number that a possible report counts as, over that of the range."""

    def heaviest_fact(self, n: int) -> tuple[str, str]:
        """Return the fact by how much one forged report among n moves the mean, for ``describe``."""
        percents = f"{100 * self.weight / n:.3g} % of the range, and 1 % of them by up to {self.weight:.3g} %"
        return "heaviest", f"one forged report of {n:,} moves the mean by up to {percents}"

    def heaviest(self, table: Table) -> float | None:
        """See the base class; known of the mean alone."""
        return self.weight * (self.high - self.low) if table.name is TableName.MEAN else None

    def warnings(self, n: int, users: int, estimator: str) -> Iterator[str]:
        """Yield a line if the error of the mean is more than a tenth of the range; see ``Decoder``."""
        error, width = float(self.forecast(n)[0]), self.high - self.low
        if error > width / 10:
            yield (
                f"the expected error of the mean is {error:.3g} at n = {users:,}, in a range of {width:.3g}: take "
                f"{two_digits(users * (10 * error / width) ** 2):,} users or more in a window, or a larger epsilon"
            )


def output_moments(cells: Counts | Floats, n: float) -> tuple[float, float]:
    """Return the mean of n outputs 0, 1, ..., of which the cells are the counts, and their sample variance."""
    outputs = np.arange(len(cells))
    mean = (cells @ outputs).item() / n
    return mean, float(cells @ (outputs - mean) ** 2) / max(n - 1, 1)


def mean_table(mean: Linear, n: int, basis: Basis) -> Table:
    """Return the table ``mean``, of one number in the units of the range.

    Args:
        mean: The estimate of one mean.
        n: The number of reports.
        basis: That of the interval of ``mean``.
    """
    low, high = mean.interval(INTERVAL_LEVEL)
    return Table(
        name=TableName.MEAN,
        values=mean.values,
        stderr=np.sqrt(mean.variance),
        n=n,
        shape=(1,),
        unbiased=mean.values,
        low=low,
        high=high,
        level=INTERVAL_LEVEL,
        basis=basis,
    )


def finite_numbers(columns: Sequence[Held]) -> Floats:
    """Return the numbers of the only column, shape (n,).

    Raises:
        ValueError: if a number is infinite or NaN, or a user wants to hide it behind a tag.
    """
    (held,) = columns
    if not np.isfinite(held.values).all():
        raise ValueError("a value is not a finite number")
    if (held.tags >= 0).any():
        raise ValueError("a number has no tags, so no user can hide it behind one")
    return held.values.astype(np.float64)


def check_range(low: float, high: float) -> None:
    """Raise ValueError unless numbers of [low, high] have a finite range that is not empty."""
    if not 0 < high - low < math.inf:
        raise ValueError(f"a range needs finite numbers, low below high, got low {low} and high {high}")
