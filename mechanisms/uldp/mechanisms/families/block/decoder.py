"""The mean, the distribution and the quantiles of a number, from the cells of ``Block``."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import NormalDist

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.estimators.grid_channels import PointChannel
from uldp.mechanisms.families.block.band import exact_ends, most_of_bins
from uldp.mechanisms.families.block.distribution import QUANTILE_LEVELS, Distribution
from uldp.mechanisms.families.block.randomizer import Block
from uldp.mechanisms.kernels.intervals import lower_tail
from uldp.mechanisms.numbers.number import NumberDecoder, check_range, mean_table, output_moments
from uldp.mechanisms.numbers.shape import Shape
from uldp.mechanisms.protocol.decoder import require_output_counts, require_reports
from uldp.mechanisms.protocol.linear import LowRankLinear
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.errors import RequestError
from uldp.schemas.flags import Flag
from uldp.schemas.specs.kinds import Range
from uldp.schemas.table import INTERVAL_LEVEL, Basis, Table, TableName

#: The estimator "ems" needs a number of bins up to this: its errors take a matrix of that many rows and columns.
MAX_EMS_BINS = 1024


class BlockDecoder(NumberDecoder):
    """Estimates the mean, or the mean, the distribution and the quantiles of a number in [low, high].

    - "auto" and "empirical": the table ``mean``, unbiased, with its interval. Not cut to [low, high].
    - "ems": also the table ``share``, of the G bins of the range in ascending order, and the table ``quantile``, both
      of ``Distribution``.

    Numbers are drawn i.i.d.: errors contain the spread of the numbers themselves.
    """

    bins_estimator, smooths = "ems", True

    def __init__(self, block: Block, low: float, high: float) -> None:
        """Build the decoder.

        Args:
            block: The mechanism of the reports.
            low: The number of the input 0.
            high: The number of the input G.

        Raises:
            ValueError: if the range is empty or not finite.
        """
        check_range(low, high)
        self.block, self.low, self.high = block, low, high
        self.estimators = ("auto", "empirical", "ems") if block.grid <= MAX_EMS_BINS else ("auto", "empirical")

    def check(self, cells: Counts, n: int) -> None:
        """Raise ValueError if the cells are not the outputs of n reports."""
        require_output_counts(cells, n, self.block.statistic_size)

    def simulate_bins(self, shape: Shape, n: int, rng: Generator) -> Floats:
        """See ``SimulatesBins``."""
        law = self.block.law(shape.of_points(self.block.grid))
        fitted = Distribution(self.block, rng.multinomial(n, law / law.sum()), n)
        return fitted.shares().values - shape.of_bins(self.block.grid)

    def linear(self, cells: Counts, n: int) -> LowRankLinear:
        """Return the unbiased estimate of the mean.

        Its interval is the normal one of the reports and of a few that nobody sent. As Agresti and Coull do (The
        American Statistician 52, 1998) for two numbers, it adds z^2 reports, half of the largest output and half of
        the least. Without these, few reports of which none is of a rare number seem to have too little spread.

        Raises:
            ValueError: if ``n`` is not positive, or the cells do not fit.
        """
        self.check(cells, n)
        require_reports(n)
        mean, sample = output_moments(cells, n)

        def interval(coverage: float) -> tuple[Floats, Floats]:
            z = NormalDist().inv_cdf((1 + coverage) / 2)
            more = cells.astype(np.float64)
            more[[0, -1]] += z**2 / 2
            centre, spread = output_moments(more, n + z**2)
            half = z * math.sqrt(self._variance(spread) / (n + z**2))
            return np.array([self._number(centre) - half]), np.array([self._number(centre) + half])

        values, variance = np.array([self._number(mean)]), np.array([self._variance(sample) / n])
        return LowRankLinear(values, variance, np.array([n]), interval)

    def _number(self, output: float) -> float:
        """Return the mean number of reports with this mean output."""
        return self.low + (self.high - self.low) / self.block.grid * self.block.input_at(output)

    def _variance(self, outputs: float) -> float:
        """Return the variance of the number that one report counts as, for this sample variance of the outputs."""
        # The noise alone has at least the variance at the middle of the range, though a small sample may have less.
        least = float(self.block.variance(np.array(self.block.grid / 2)))
        step = (self.high - self.low) / self.block.grid
        return step**2 * max(outputs / (1 - self.block.noise) ** 2, least)

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Return how probable it is that some run of outputs has so few or so many of n honest reports.

        Noise gives a run of L outputs a share of noise L/(G+W) or more, and at most 1 - noise of the reports, or L/W of
        these, come on top. So under all inputs, given or drawn, the number of reports in a run is stochastically
        between binomial ones. The test takes all runs of 1, 2, 4, ... outputs, with Bonferroni's bound, at every n.
        """
        self.check(cells, n)
        if n <= 0:
            return {}
        outputs, noise = self.block.statistic_size, self.block.noise
        below = np.concatenate([[0], np.cumsum(cells)])
        tails, tests = [], 0
        for length in (1 << np.arange((outputs - 1).bit_length())).tolist():
            runs = below[length:] - below[:-length]
            least = noise * length / outputs
            most = least + (1 - noise) * min(length / self.block.width, 1)
            tails += [lower_tail(int(runs.min()), n, least), lower_tail(n - int(runs.max()), n, max(1 - most, 0))]
            tests += 2 * len(runs)
        return {Flag.IMPROBABLE_COUNTS: min(1.0, tests * min(tails))}

    def forecast(self, n: int) -> Floats:
        """Return the standard error of the mean of n uniform numbers, shape (1,)."""
        inputs = np.arange(self.block.size)
        variance = self.block.variance(inputs) + (inputs - self.block.grid / 2) ** 2
        step = (self.high - self.low) / self.block.grid
        return np.array([step * math.sqrt(np.trapezoid(variance) / self.block.grid / n)])

    @property
    def weight(self) -> float:
        """See the base class."""
        return (self.block.input_at(self.block.statistic_size - 1) - self.block.input_at(0)) / self.block.grid

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        """Yield the sizes of the mechanism, and the error at n reports."""
        block = self.block
        yield (
            "outputs",
            f"{block.statistic_size:,} symbols; noise {block.noise:.6g}, else one of {block.width:,} in a row",
        )
        yield self.heaviest_fact(n)
        yield "errors", f"of the mean at n = {n:,}, uniform values: {self.forecast(n)[0]:.3g}"

    def forged_ends(self, table: Table, cells: Counts, forged: float) -> tuple[Floats, Floats] | None:
        """See the base class; of bins and quantiles, exact ends, whatever the distribution of the honest numbers."""
        if table.name is TableName.MEAN or table.low is None or table.high is None:
            return super().forged_ends(table, cells, forged)
        channel = PointChannel(self.block.grid, self.block.width, self.block.noise)
        if table.name is TableName.SHARE:
            return np.zeros_like(table.low), np.maximum(
                table.high, most_of_bins(channel, cells, INTERVAL_LEVEL, math.floor(forged))
            )
        ends = exact_ends(channel, cells, QUANTILE_LEVELS, INTERVAL_LEVEL, math.floor(forged))
        low, high = (self.low + (self.high - self.low) / self.block.grid * points for points in ends)
        return np.minimum(table.low, low), np.maximum(table.high, high)

    def tables(self, cells: Counts, n: int, estimator: str) -> tuple[Table, ...]:
        """Return the table ``mean``, and with "ems" also ``share`` and ``quantile``.

        Raises:
            ValueError: if ``n`` is not positive, the cells do not fit, or the decoder has no such estimator.
        """
        if estimator not in self.estimators:
            names = ", ".join(self.estimators)
            raise ValueError(f"a block of {self.block.grid} bins has the estimators {names}, not {estimator!r}")
        table = mean_table(self.linear(cells, n), n, Basis.NORMAL)
        return (table, *self._distribution_tables(cells, n)) if estimator == "ems" else (table,)

    def _distribution_tables(self, cells: Counts, n: int) -> tuple[Table, Table]:
        distribution = Distribution(self.block, cells, n)
        bins = distribution.shares()
        share = Table(
            name=TableName.SHARE,
            values=bins.values,
            stderr=bins.stderr,
            n=n,
            shape=bins.values.shape,
            low=bins.low,
            high=bins.high,
            level=INTERVAL_LEVEL,
            whole=True,
            basis=Basis.NORMAL,
        )
        return share, self._quantile_table(distribution, n, QUANTILE_LEVELS)

    def _quantile_table(self, distribution: Distribution, n: int, levels: Sequence[float]) -> Table:
        quantiles, width = distribution.quantiles(levels), self.high - self.low
        return Table(
            name=TableName.QUANTILE,
            values=self.low + width * quantiles.values,
            stderr=width * quantiles.stderr,
            n=n,
            shape=quantiles.values.shape,
            keys=tuple(map(str, levels)),
            low=self.low + width * quantiles.low,
            high=self.low + width * quantiles.high,
            level=INTERVAL_LEVEL,
            basis=Basis.NORMAL,
        )

    @property
    def number_of_bins(self) -> int:
        """See ``HasRanges``."""
        return self.block.grid

    def range_table(self, cells: Counts, n: int, ranges: Sequence[Range], estimator: str) -> Table:
        """See ``HasRanges``; the distribution has one estimator."""
        self._require_distribution(cells, n)
        found = Distribution(self.block, cells, n).ranges(
            [each.first for each in ranges], [each.end for each in ranges]
        )
        return Table(
            name=TableName.RANGE,
            values=found.values,
            stderr=found.stderr,
            n=n,
            shape=found.values.shape,
            keys=tuple(each.text for each in ranges),
            low=found.low,
            high=found.high,
            level=INTERVAL_LEVEL,
            basis=Basis.NORMAL,
        )

    def quantile_table(self, cells: Counts, n: int, levels: Sequence[float], estimator: str) -> Table:
        """See ``HasRanges``; the distribution has one estimator."""
        self._require_distribution(cells, n)
        return self._quantile_table(Distribution(self.block, cells, n), n, levels)

    def _require_distribution(self, cells: Counts, n: int) -> None:
        if "ems" not in self.estimators:
            raise RequestError(
                f"the distribution of a number is estimated in {MAX_EMS_BINS:,} bins at most, and this block has"
                f" {self.block.grid:,}"
            )
        self.check(cells, n)
        require_reports(n)
