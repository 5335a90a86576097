"""A value near the true one: privacy in proportion to the distance of two values (d-privacy, condensed LDP).

Sources: Andres, Bordenabe, Chatzikokolakis & Palamidessi, "Geo-Indistinguishability" (CCS 2013); Chatzikokolakis et
al., "Broadening the Scope of Differential Privacy Using Metrics" (PETS 2013); Gursoy et al., "Secure and
Utility-Aware Data Collection with Condensed Local Differential Privacy" (IEEE TDSC 2019), for the exponential
mechanism; Wang, Zhang, Feng & Yang, "A Comprehensive Survey on Local Differential Privacy toward Data Statistics and
Analysis" (Sensors 20, 2020), equations (6) and (7).
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.protocol.cells import Cells, count_symbols
from uldp.mechanisms.protocol.mechanism import Guarantee, Mechanism, PayloadForm, Privacy, Randomness
from uldp.schemas.arrays import Floats, Mask, Payloads, Symbols, Values

#: A device draws an integer below this.
RESOLUTION = 1 << 62
#: Distances count up to this many nats; so every output has a probability that integers can represent.
MOST_NATS = 40.0
# Floats have a row of weights to a relative error below this, times its length.
_FLOAT_ERROR = 1e-14


class MetricMechanism(Mechanism):
    """The exponential mechanism for a distance.

    It reports y for the true symbol x with the probability

        Q(y|x) = exp(-e d(x, y) / 2) / sum_z exp(-e d(x, z) / 2)

    where d is the number of steps between two symbols in their order, or between the cells of a grid with so many
    columns, row by row, as the crow flies. The numerators of two true symbols differ by at most exp(e d / 2), by the
    triangle inequality, and so do the denominators.

    Guarantee: one report is epsilon-d-private, which is not epsilon-LDP. Its likelihoods under two true symbols differ
    by at most the factor exp(epsilon d(x, x')): near values are protected from each other, and far values are not. In
    particular, one report is LDP with epsilon times the largest distance, or with ``MOST_NATS`` if that is less.

    It holds exactly. Distances are cut at ``MOST_NATS`` / epsilon, and a cut distance is a distance too. A device
    compares an integer with the rounded cumulated probabilities of a row. Rounding moves a probability by at most one
    part in ``RESOLUTION``, and e is less than epsilon by as much as that may change the ratio of two symbols with
    distance 1; so the ratio of those with distance d stays within exp(epsilon d).

    A payload is a symbol. The device takes as long for each symbol: it computes one row of Q, and draws one integer.

    Attributes:
        epsilon: The budget for each unit of distance, in nats.
    """

    epsilon: float
    partitions = True

    def __init__(self, size: int, epsilon: float, columns: int | None = None) -> None:
        """Build the mechanism.

        Args:
            size: |Z|.
            epsilon: The budget for each unit of distance, in nats.
            columns: The columns of the grid in which the symbols are; None if they are in a line.

        Raises:
            ValueError: if size is less than 2, epsilon is not positive, or a row is not full.
        """
        if size < 2:
            raise ValueError(f"a metric mechanism needs two symbols or more, got size {size}")
        if not epsilon > 0:
            raise ValueError(f"epsilon must be positive, got {epsilon}")
        if columns is not None and (columns < 1 or size % columns):
            raise ValueError(f"{columns} columns do not divide {size} symbols into full rows")
        self.size = self.statistic_size = size
        self.form = PayloadForm(symbols=size)
        self.epsilon = epsilon
        self._rows, self._columns = np.divmod(np.arange(size), size if columns is None else columns)
        farthest = float(self.distances(np.array([0])).max())  # opposite corners
        # Every output has this probability or more, and rounding changes it by the part ``rounded`` or less.
        least = np.exp(-min(epsilon * farthest, MOST_NATS) / 2) / size
        rounded = 1 / (RESOLUTION * least) + size * _FLOAT_ERROR
        self._scale = max(epsilon - 4 * rounded, 0.0) / 2
        worst = min(epsilon * farthest, MOST_NATS)
        terms = f"epsilon {epsilon:g} for each unit of their distance, up to {worst:.4g} for the farthest"
        self.guarantee = Guarantee(Privacy.METRIC, worst, terms=terms)

    def distances(self, symbols: Symbols) -> Floats:
        """Return the distance of each of n symbols to all, shape (n, |Z|)."""
        across = self._columns[symbols, np.newaxis] - self._columns
        along = self._rows[symbols, np.newaxis] - self._rows
        return np.asarray(np.hypot(across, along), dtype=np.float64)

    def thresholds(self, symbols: Symbols) -> npt.NDArray[np.int64]:
        """Return the cumulated probabilities of the outputs of n symbols, over ``RESOLUTION``, shape (n, |Z|)."""
        nats = np.minimum(self.epsilon * self.distances(symbols), MOST_NATS) / self.epsilon
        weights = np.exp(-self._scale * nats)
        parts = np.rint(weights / weights.sum(axis=1, keepdims=True) * RESOLUTION).astype(np.int64)
        # The own symbol, which is the most probable one, takes what rounding has left.
        parts[np.arange(len(symbols)), symbols] += RESOLUTION - parts.sum(axis=1)
        cumulated: npt.NDArray[np.int64] = np.cumsum(parts, axis=1)
        return cumulated

    @cached_property
    def matrix(self) -> Floats:
        """Q, shape (|Z|, |Z|): the probability of each output (column) for each symbol (row)."""
        blocks = [
            np.diff(self.thresholds(np.arange(start, min(start + 256, self.size))), axis=1, prepend=0) / RESOLUTION
            for start in range(0, self.size, 256)
        ]
        return np.concatenate(blocks)

    def perturb(self, symbols: Values, randomness: Randomness) -> npt.NDArray[np.uint32]:
        """Perturb true symbols of shape (n,); each takes one draw, whatever the symbol.

        Raises:
            ValueError: if a symbol is outside of Z.
        """
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
        """Return the probability of each output, shape (|Z|,), if symbols are distributed as ``r``."""
        return np.asarray(r @ self.matrix)

    def possible(self, payloads: Payloads) -> Mask:
        """Return which payloads are symbols: each has a positive probability, whatever the true symbol is."""
        return payloads < self.size

    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[Cells]:
        """Count the reports of each symbol in each of k groups."""
        return count_symbols(np.concatenate(parts), groups, k, self.size)
