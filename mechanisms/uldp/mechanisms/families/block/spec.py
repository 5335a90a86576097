"""The piecewise and the square wave mechanism in specs, and the decoder of a number, of its mean and distribution."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.random import Generator
from pydantic import Field

from uldp.mechanisms.assembly import kept
from uldp.mechanisms.decoders.table_of import table_from
from uldp.mechanisms.encodings.number_encoding import NumberEncoding, check_range
from uldp.mechanisms.estimators.ems import GridChannel
from uldp.mechanisms.families.block.distribution import (
    QUANTILE_LEVELS,
    Distribution,
    Estimated,
    exact_ends,
    most_of_bins,
)
from uldp.mechanisms.families.block.randomizer import Block
from uldp.mechanisms.kernels.hashing import MOST_BUCKETS
from uldp.mechanisms.kernels.intervals import lower_tail
from uldp.mechanisms.laws.interval import normal_quantile
from uldp.mechanisms.numbers.outputs import NumberLaw, OutputsDecoder, Shape
from uldp.mechanisms.protocol.decoder import require_reports
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.errors import RequestError
from uldp.schemas.flags import Flag
from uldp.schemas.specs.estimators import EstimatorName
from uldp.schemas.specs.kinds import Number, Range
from uldp.schemas.specs.mechanism_family import MisfitError, PrivateSpec
from uldp.schemas.specs.variable import Variable
from uldp.schemas.table import INTERVAL_LEVEL, Basis, Table, TableName

#: The estimator "ems" needs a number of bins up to this: its errors take a matrix of that many rows and columns.
MAX_EMS_BINS = 1024


class BlockDecoder(OutputsDecoder):
    """Estimates the mean, or the mean, the distribution and the quantiles of a number in [low, high].

    - "auto" and "empirical": the table ``mean``, unbiased, with its interval. Not cut to [low, high].
    - "ems": also the table ``share``, of the G bins of the range in ascending order, and the table ``quantile``, both
      of ``Distribution``.

    Numbers are drawn i.i.d.: errors contain the spread of the numbers themselves.
    """

    bins_estimator, smooths = "ems", True

    def __init__(self, mechanism: Mechanism, low: float, high: float) -> None:
        check_range(low, high)
        block, lasting = cast(Block, mechanism.bare), cast(Block | None, mechanism.inner)
        step = (high - low) / block.grid
        numbers = low + step * block.input_at(np.arange(block.statistic_size))
        law = _law(block, step, None if lasting is None else _law(lasting, step))
        outputs = f"{block.statistic_size:,} symbols; noise {block.noise:.6g}, else one of {block.width:,} in a row"
        super().__init__(low, high, numbers, law, step=step, fact=("outputs", outputs))
        self.block = block
        self.estimators = ("auto", "empirical", "ems") if block.grid <= MAX_EMS_BINS else ("auto", "empirical")

    def simulate_bins(self, shape: Shape, n: int, rng: Generator) -> Floats:
        """See ``SimulatesBins``."""
        law = self.block.law(shape.of_points(self.block.grid))
        fitted = Distribution(self.block, rng.multinomial(n, law / law.sum()), n)
        return fitted.shares().values - shape.of_bins(self.block.grid)

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Test all runs of 1, 2, 4, ... outputs, with Bonferroni's bound, at every n.

        Noise gives a run of L outputs a share of noise L/(G+W) or more, and at most 1 - noise of the reports, or L/W of
        these, come on top. So under all inputs the number of its reports is stochastically between binomial ones.
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

    def forged_ends(self, table: Table, cells: Counts, forged: float) -> tuple[Floats, Floats] | None:
        """See the base class; of bins and quantiles, exact ends, whatever the distribution of the honest numbers."""
        if table.name is TableName.MEAN or table.low is None or table.high is None:
            return super().forged_ends(table, cells, forged)
        channel = GridChannel(self.block.grid, self.block.width, self.block.noise)
        if table.name is TableName.SHARE:
            return np.zeros_like(table.low), np.maximum(
                table.high, most_of_bins(channel, cells, INTERVAL_LEVEL, math.floor(forged))
            )
        ends = exact_ends(channel, cells, QUANTILE_LEVELS, INTERVAL_LEVEL, math.floor(forged))
        low, high = (self.low + (self.high - self.low) / self.block.grid * points for points in ends)
        return np.minimum(table.low, low), np.maximum(table.high, high)

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        (mean,) = super().tables(cells, n, estimator, repeats)
        if estimator != "ems":
            return (mean,)
        distribution, wider = Distribution(self.block, cells, n), self._wider(cells, n, repeats)
        share = _table(TableName.SHARE, distribution.shares(), wider, n=n, whole=True)
        return mean, share, self._quantiles(distribution, QUANTILE_LEVELS, wider, n)

    def _wider(self, cells: Counts, n: int, repeats: float) -> float:
        """Return how many times as large errors are if devices repeat: as those of the mean, and no others are more."""
        return math.sqrt(self.linear(cells, n, repeats).variance[0] / self.linear(cells, n).variance[0])

    def _quantiles(self, distribution: Distribution, levels: Sequence[float], wider: float, n: int) -> Table:
        found, keys = distribution.quantiles(levels).on(self.low, self.high), tuple(map(str, levels))
        return _table(TableName.QUANTILE, found, wider, n=n, bounds=(self.low, self.high), keys=keys)

    @property
    def number_of_bins(self) -> int:
        return self.block.grid

    def range_table(
        self, cells: Counts, n: int, ranges: Sequence[Range], estimator: str, repeats: float = 0.0
    ) -> Table:
        self._require_distribution(cells, n)
        firsts, ends = [each.first for each in ranges], [each.end for each in ranges]
        found, keys = Distribution(self.block, cells, n).ranges(firsts, ends), tuple(each.text for each in ranges)
        return _table(TableName.RANGE, found, self._wider(cells, n, repeats), n=n, keys=keys)

    def quantile_table(
        self, cells: Counts, n: int, levels: Sequence[float], estimator: str, repeats: float = 0.0
    ) -> Table:
        self._require_distribution(cells, n)
        return self._quantiles(Distribution(self.block, cells, n), levels, self._wider(cells, n, repeats), n)

    def _require_distribution(self, cells: Counts, n: int) -> None:
        if "ems" not in self.estimators:
            raise RequestError(
                f"the distribution of a number is estimated in {MAX_EMS_BINS:,} bins at most, and this block has"
                f" {self.block.grid:,}"
            )
        self.check(cells, n)
        require_reports(n)


def _table(
    name: TableName, found: Estimated, wider: float, bounds: tuple[float, float] = (0.0, 1.0), **fields: Any
) -> Table:
    """Return the table of estimates by EMS, with intervals so many times as wide."""
    ends = found.values - wider * (found.values - found.low), found.values + wider * (found.high - found.values)
    # Those that normal intervals of these lengths have.
    stderr = (ends[1] - ends[0]) / (2 * normal_quantile((1 + INTERVAL_LEVEL) / 2))
    return table_from(name, found.values, stderr, ends, Basis.NORMAL, bounds=bounds, **fields)


def _law(block: Block, step: float, response: NumberLaw | None = None) -> NumberLaw:
    """Return the law of the inputs that outputs count as, in units of the number.

    An output is uniform over all of them, or over a block around the input t: about the middle, its third moment is
    (1 - noise) (t^3 + 3 t s), where s is the variance of a uniform block.
    """
    noise, honest, half = block.noise, 1 - block.noise, block.grid / 2
    spread = (block.statistic_size**2 - block.width**2) / 12
    third = -3 * noise * spread * step**2 / honest**2, noise * (2 * noise - 1) / honest**2
    at_end = step**2 * float(block.variance(np.array(block.grid)))
    return NumberLaw(half * step, at_end, noise / honest, third, response=response)


class NumberSpec(PrivateSpec):
    """A mechanism for a number."""

    not_ranked = "for numbers"
    domain_kind = "number"
    estimators: ClassVar[tuple[EstimatorName, ...]] = ("auto", "empirical")


class BlockSpec(NumberSpec):
    """The piecewise and the square wave mechanism on a grid: outputs near the true bin are more probable.

    Attributes:
        bins: The number of bins of the range.
        width: The width of the block of more probable outputs.
    """

    title = "the piecewise and square wave mechanism"
    literature: ClassVar = {
        "block with width: piecewise": "piecewise PM",
        "block with width: square-wave": "square-wave SW",
    }
    estimators = ("auto", "empirical", "ems")

    name: Literal["block"]
    bins: int = Field(default=1024, ge=2, le=MOST_BUCKETS)
    width: Literal["auto", "piecewise", "square-wave"] = "auto"

    def check_estimator(self, estimator: str) -> None:
        if estimator == "ems" and self.bins > MAX_EMS_BINS:
            raise MisfitError(
                "bins",
                f"estimator ems takes at most {MAX_EMS_BINS:,} bins, got {self.bins:,}; write bins: {MAX_EMS_BINS}, or"
                " remove estimator ems",
            )

    def protocol(self, variable: Variable) -> LdpProtocol:
        number = variable.of_kind(Number)
        block = Block(self.epsilon, self.bins, self.width)
        encoding = NumberEncoding(number.low, number.high, self.bins)
        mechanism = kept(self, block, lambda epsilon: Block(epsilon, self.bins, block.width))
        return LdpProtocol(encoding, mechanism, BlockDecoder(mechanism, number.low, number.high))
