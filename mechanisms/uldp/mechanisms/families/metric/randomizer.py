"""A value near the true one: privacy in proportion to the distance of two values (d-privacy, condensed LDP).

Sources: Andres, Bordenabe, Chatzikokolakis & Palamidessi, "Geo-Indistinguishability" (CCS 2013); Chatzikokolakis et
al., "Broadening the Scope of Differential Privacy Using Metrics" (PETS 2013); Ghosh, Roughgarden & Sundararajan,
"Universally Utility-Maximizing Privacy Mechanisms" (STOC 2009), for the truncated geometric mechanism of a line;
Gursoy et al., "Secure and Utility-Aware Data Collection with Condensed Local Differential Privacy" (IEEE TDSC 2019),
for the exponential mechanism of a grid; equations (6) and (7) of the survey of Wang et al. (Sensors 20, 2020). The
scale and the weights of a grid are ours.
"""

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.mechanism import Guarantee, Privacy, Randomness
from uldp.mechanisms.randomizers.reports import CountedReports
from uldp.schemas.arrays import Floats, Symbols, Values

#: A device draws an integer below this.
RESOLUTION = 1 << 62
#: Distances count up to this many nats; so every output has a probability that integers can represent.
MOST_NATS = 18.0
# Floats have the logarithm of a weight to this error, and that of a row's sum to this and the second for each weight.
_FLOAT_ERROR, _SUM_ERROR = 2e-14, 2e-16
# The scale is found to so many nats.
_TOLERANCE = 1e-13


class MetricMechanism(CountedReports):
    """Noise that is less probable by a factor for each unit of distance; on a line, the truncated geometric mechanism.

    It reports y for the true symbol x with the probability

        Q(y|x) = b(y) exp(-s d(x, y)) / Z(x)        Z(x) = sum_z b(z) exp(-s d(x, z))

    where d is the number of steps between two symbols in their order, or between the cells of a grid with so many
    columns, row by row, as the crow flies. The weight b(y) is 1/(1 - e^-s) for each border on which y is: the two ends
    of a line, or of the rows and of the columns of a grid. On a line all Z(x) are then equal, and the ends have what
    infinite geometric noise puts beyond them. All weights are 1 where a line is shorter than 1 nat, or a side of a grid
    shorter than 2; sides of two cells do not count.

    Guarantee: one report is epsilon-d-private, which is not epsilon-LDP. Its likelihoods under two true symbols differ
    by at most the factor exp(epsilon d(x, x')): near values are protected from each other, and far values are not. In
    particular, one report is LDP with epsilon times the largest distance, or with ``MOST_NATS`` if that is less.

    It holds exactly, and is reached. By the triangle inequality, the likelihoods of x and x' differ most for y = x: by
    exp(s d(x, x')) Z(x') / Z(x). The scale s is the root of ``worst_slope`` = epsilon, less what follows. On a line it
    is epsilon, where the exponential mechanism without weights has epsilon / 2. Distances are cut at ``MOST_NATS`` /
    epsilon, and a cut distance is a distance too. A device compares an integer with the rounded cumulated probabilities
    of a row. Rounding moves a probability by at most one part in ``RESOLUTION``, and ``worst_slope`` is less than
    epsilon by as much as that may change the ratio of two symbols with distance 1; so the ratio of those with distance
    d stays within exp(epsilon d).

    A payload is a symbol. The device takes as long for each symbol: it computes one row of Q, and draws one integer.
    """

    def __init__(self, size: int, epsilon: float, columns: int | None = None) -> None:
        if size < 2:
            raise ValueError(f"a metric mechanism needs two symbols or more, got size {size}")
        if not epsilon > 0:
            raise ValueError(f"epsilon must be positive, got {epsilon}")
        if columns is not None and (columns < 1 or size % columns):
            raise ValueError(f"{columns} columns do not divide {size} symbols into full rows")
        self._of_payloads(size)
        self.size = size
        self.epsilon = epsilon
        self._sides = size // (columns or size), columns or size
        self._places = np.divmod(np.arange(size), self._sides[1])
        farthest = math.dist((1, 1), self._sides)  # of opposite corners
        worst = min(epsilon * farthest, MOST_NATS)
        terms = f"epsilon {epsilon:g} for each unit of their distance, up to {worst:.4g} for the farthest"
        self.guarantee = Guarantee(Privacy.METRIC, worst, terms=terms)

    def distances(self, symbols: Symbols) -> Floats:
        """Return the distance of each of n symbols to all, shape (n, |Z|), cut at ``MOST_NATS`` / epsilon."""
        along, across = (place[symbols, np.newaxis] - place for place in self._places)
        return np.asarray(np.minimum(self.epsilon * np.hypot(along, across), MOST_NATS) / self.epsilon)

    def borders(self, scale: float) -> Floats:
        """Return b for a scale s, shape (|Z|,)."""
        # Both rows of two are borders, which is as good as none; so is the row of a line.
        long = [(place, side) for place, side in zip(self._places, self._sides, strict=True) if side > 2]
        if any(self.epsilon * side < len(long) for _, side in long):
            return np.ones(self.size)  # where all is near, borders would attract almost all reports
        on_border = sum(((place == 0) | (place == side - 1)).astype(np.int64) for place, side in long)
        return np.asarray((-np.expm1(-scale)) ** (np.zeros(self.size) - on_border))

    @cached_property
    def scale(self) -> float:
        """s: the largest for which the guarantee holds after rounding, to a billionth of a nat."""
        # A reflection of the grid moves any symbol into its first quarter.
        row, column = (np.minimum(place, place[::-1]) for place in self._places)
        quarter, of_quarter = np.unique(row * self._sides[1] + column, return_inverse=True)
        distances = self.distances(quarter)
        nearness = 1 / np.where(distances > 0, distances, np.inf)

        def sums(scale: float) -> Floats:
            return np.asarray(np.exp(-scale * distances) @ self.borders(scale))

        def worst_slope(scale: float) -> float:
            logs = np.log(sums(scale))
            return scale + float((np.abs(logs[:, np.newaxis] - logs[of_quarter]) * nearness).max())

        # Sums are less for larger scales. Rounding moves a part by one, and the largest one by all others' rests.
        least = np.exp(-self.epsilon * distances.max()) / sums(self.epsilon / 2).max()
        rounded = (1 / least + self.size**2) / RESOLUTION + _FLOAT_ERROR + self.size * _SUM_ERROR
        bound = self.epsilon - 2 * float(rounded * nearness.max())
        return _root(worst_slope, bound, self.epsilon / 4, self.epsilon)

    def thresholds(self, symbols: Symbols) -> npt.NDArray[np.int64]:
        """Return the cumulated probabilities of the outputs of n symbols, over ``RESOLUTION``, shape (n, |Z|)."""
        weights = np.exp(-self.scale * self.distances(symbols)) * self.borders(self.scale)
        parts = np.rint(weights / weights.sum(axis=1, keepdims=True) * RESOLUTION).astype(np.int64)
        # The most probable output takes what rounding has left.
        parts[np.arange(len(symbols)), weights.argmax(axis=1)] += RESOLUTION - parts.sum(axis=1)
        cumulated: npt.NDArray[np.int64] = np.cumsum(parts, axis=1)
        return cumulated

    def device_form(self) -> DeviceForm:
        # Larger than 2^53, so as text.
        rows = self.thresholds(np.arange(self.size))
        return {"form": "near", "ends": [[str(each) for each in row] for row in rows.tolist()]}

    @cached_property
    def matrix(self) -> Floats:
        """Q, shape (|Z|, |Z|): the probability of each output (column) for each symbol (row)."""
        blocks = [
            np.diff(self.thresholds(np.arange(start, min(start + 256, self.size))), axis=1, prepend=0) / RESOLUTION
            for start in range(0, self.size, 256)
        ]
        return np.concatenate(blocks)

    def perturb(self, symbols: Values, randomness: Randomness) -> npt.NDArray[np.uint32]:
        self.check_symbols(symbols)
        drawn = randomness.integers(0, RESOLUTION, len(symbols))
        outputs = np.empty(len(symbols), dtype=np.uint32)
        # A device has one symbol; a simulation has many devices with one symbol.
        order = np.argsort(symbols, kind="stable")
        different, starts = np.unique(symbols[order], return_index=True)
        for symbol, reports in zip(different, np.split(order, starts[1:]), strict=False):
            # A binary search takes as many comparisons for every symbol.
            row = self.thresholds(np.array([symbol]))[0]
            outputs[reports] = np.searchsorted(row, drawn[reports], side="right")
        return outputs

    def law(self, r: Floats) -> Floats:
        return np.asarray(r @ self.matrix)


def _root(function: Callable[[float], float], bound: float, low: float, high: float) -> float:
    """Return where a function is up to ``_TOLERANCE`` below a bound between two ends, by regula falsi (Illinois)."""
    aim = bound - _TOLERANCE / 2
    below, above, before = function(low) - aim, function(high) - aim, 0
    while True:
        place = (low * above - high * below) / (above - below)
        off = function(place) - aim
        if abs(off) <= _TOLERANCE / 2:
            return place
        side = 1 if off > 0 else -1
        if side > 0:
            high, above, below = place, off, below / 2 if before == side else below
        else:
            low, below, above = place, off, above / 2 if before == side else above
        before = side
