"""How well a number's distribution is estimated, and how often its intervals cover: ``block`` with ``ems``.

    python -m benchmarks.quantiles

The numbers are of five distributions on [0, 1], of which one has an atom and one a gap; epsilon is 1. Cells are drawn
from their law, so a window costs what its estimate does, which is the last column. An interval covers a level if
some quantile at this level is within: in a gap there are many. "Fits" are intervals as they were before: from fits
alone, also where numbers are uneven. ``--trials`` is the number of windows, by default 200, and 40 of 1,024 bins, where
a coverage of .95 has a standard error of .034. ``--bins 64`` prints one number of bins, and ``--bins 0`` the mean at
few reports alone.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import stats

from benchmarks.coverage import Ends, covers, print_heading, print_row
from benchmarks.options import read_options
from uldp.mechanisms.families.block.distribution import QUANTILE_LEVELS, Distribution
from uldp.mechanisms.families.block.randomizer import Block
from uldp.mechanisms.families.block.spec import BlockDecoder
from uldp.schemas.arrays import Floats, Mask

EPSILON = 1.0
#: How many windows are drawn, by the number of bins.
WINDOWS = {24: 200, 64: 200, 256: 200, 1024: 40}
USERS = (20_000, 200_000)
FEW_USERS = (10, 30, 100, 300, 999)
# The distributions are those of so many numbers.
_NUMBERS = 40_000


def _halves(one: Callable[[Floats], Floats], other: Callable[[Floats], Floats], ranks: Floats) -> Floats:
    return np.concatenate([one(ranks[::2]), other(ranks[::2])])


#: Numbers from ranks, of which each is as probable as another.
SHAPES: Mapping[str, Callable[[Floats], Floats]] = {
    "beta": stats.beta(2, 5).ppf,
    "exponential": stats.expon(scale=0.15).ppf,
    "two modes": lambda ranks: _halves(stats.norm(0.25, 0.06).ppf, stats.norm(0.75, 0.06).ppf, ranks),
    "peak": stats.norm(0.37, 0.03).ppf,
    "atom": lambda ranks: _halves(lambda half: np.full(len(half), 0.6), lambda half: half, ranks),
}
#: Numbers of which few are far from the others, or all are at one end.
FAR: Mapping[str, Callable[[Floats], Floats]] = {
    "one end": np.zeros_like,
    "1 in 50 at the other end": lambda ranks: np.where(ranks < 1 / 50, 1.0, 0.0),
    "1 in 10 at the other end": lambda ranks: np.where(ranks < 1 / 10, 1.0, 0.0),
    "half at either end": lambda ranks: np.where(ranks < 1 / 2, 1.0, 0.0),
    "beta": SHAPES["beta"],
}


class Figures(NamedTuple):
    """What windows of one setting show.

    Attributes:
        error: The mean distance of the quantiles from the truth, over all levels.
        fits: How often the interval by fits alone covers, of the quantile that is covered least.
        fits_width: The median width of these intervals, over all levels.
        least: How often the published interval covers, of the quantile that is covered least.
        width: The median width of these intervals, over all levels.
        bins: How often intervals of the shares of bins cover, over all bins.
        milliseconds: The time of the processor for the tables of one window.
    """

    error: float
    fits: float
    fits_width: float
    least: float
    width: float
    bins: float
    milliseconds: float


@dataclass(frozen=True)
class Population:
    """Numbers on [0, 1], in ascending order."""

    numbers: Floats

    def law(self, block: Block) -> Floats:
        """Return the probability of each output of the devices."""
        place = self.numbers * block.grid
        below = np.minimum(place.astype(np.int64), block.grid - 1)
        r = np.bincount(below, 1 - (place - below), block.size) + np.bincount(below + 1, place - below, block.size)
        p = block.law(r / len(place))
        probabilities: Floats = p / p.sum()
        return probabilities

    @property
    def quantiles(self) -> Floats:
        """The quantiles at the published levels."""
        return np.quantile(self.numbers, QUANTILE_LEVELS, method="inverted_cdf")

    def shares(self, bins: int) -> Floats:
        """Return the shares of bins."""
        shares: Floats = np.histogram(self.numbers, np.linspace(0, 1, bins + 1))[0] / len(self.numbers)
        return shares

    def covered(self, low: Floats, high: Floats) -> Mask:
        """Return which intervals of quantiles hold one at their level."""
        below = np.searchsorted(self.numbers, low, side="left") / len(self.numbers)
        up_to = np.searchsorted(self.numbers, high, side="right") / len(self.numbers)
        return (below <= QUANTILE_LEVELS) & (up_to >= QUANTILE_LEVELS)


@cache
def population(shape: str) -> Population:
    """Return the numbers of a shape."""
    ranks = (np.arange(_NUMBERS) + 0.5) / _NUMBERS
    return Population(np.sort(np.clip({**SHAPES, **FAR}[shape](ranks), 0, 1)))


def measure(shape: str, bins: int, n: int, trials: int, epsilon: float = EPSILON) -> Figures:
    """Simulate windows of n users."""
    users, block = population(shape), Block(epsilon, bins)
    rng, law, truth = np.random.default_rng([n, bins]), users.law(block), users.shares(bins)
    errors, of_bins, seconds = [], [], 0.0
    ends: tuple[list[Ends], list[Ends]] = ([], [])
    for _ in range(trials):
        cells = rng.multinomial(n, law)
        began = time.process_time()
        distribution = Distribution(block, cells, n)
        shares, quantiles = distribution.shares(), distribution.quantiles()
        seconds += time.process_time() - began
        errors.append(np.abs(quantiles.values - users.quantiles).mean())
        of_bins.append(((shares.low <= truth) & (truth <= shares.high)).mean())
        fits = distribution.smooth_ends()
        ends[0].append((fits[0] / bins, fits[1] / bins))
        ends[1].append((quantiles.low, quantiles.high))
    before, now = ((min(np.mean([users.covered(*each) for each in some], axis=0)), _width(some)) for some in ends)
    return Figures(float(np.mean(errors)), *before, *now, float(np.mean(of_bins)), 1e3 * seconds / trials)


def _width(ends: Sequence[Ends]) -> float:
    return float(np.median([high - low for low, high in ends]))


def measure_mean(shape: str, n: int, trials: int, epsilon: float, bins: int = 64) -> float:
    """Return how often the interval of the mean covers in windows of n users."""
    users, decoder = population(shape), BlockDecoder(Block(epsilon, bins), 0.0, 1.0)
    truth, law = np.array([users.numbers.mean()]), users.law(decoder.block)
    windows = np.random.default_rng([n, bins]).multinomial(n, law, trials)
    return float(np.mean([covers(decoder.tables(cells, n, "empirical")[0], truth) for cells in windows]))


def rows(bins: int, trials: int) -> Iterator[tuple[str, int, Figures]]:
    """Measure all shapes with so many bins."""
    for shape in SHAPES:
        for n in USERS:
            yield f"{shape}, {bins}", n, measure(shape, bins, n, trials)


def main() -> None:
    """Print two Markdown tables."""
    options = read_options(__doc__, trials=0, bins=-1)
    print_heading("numbers, bins", "n", *Figures._fields)
    for bins in WINDOWS if options.bins < 0 else (options.bins,) * (options.bins > 0):
        for row in rows(bins, options.trials or WINDOWS.get(bins, 200)):
            print_row(*row)
    if options.bins <= 0:
        epsilons = (1.0, 4.0)
        print_heading("mean covered", "n", *(f"epsilon {epsilon:g}" for epsilon in epsilons))
        for shape in FAR:
            for n in FEW_USERS:
                trials = 20 * (options.trials or 100)
                print_row(shape, n, tuple(measure_mean(shape, n, trials, each) for each in epsilons))


if __name__ == "__main__":
    main()
