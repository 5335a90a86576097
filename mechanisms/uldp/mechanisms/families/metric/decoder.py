"""The decoder of a mechanism whose outputs have any known probabilities: a matrix in place of a p and a q."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.decoders.share_tables import table_without_tags
from uldp.mechanisms.estimators.ems import TOLERANCE
from uldp.mechanisms.families.metric.randomizer import MetricMechanism
from uldp.mechanisms.inference.forecast import equal_shares, one_simulation_text
from uldp.mechanisms.kernels.intervals import outside_p_value
from uldp.mechanisms.protocol.decoder import Decoder, heaviest_fact, require_output_counts, require_reports
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.table import Basis, Table

# EM stops after so many steps at the latest, and before that after so many products: a step takes one for each entry of
# the matrix, twice, and these take some seconds.
_MAX_STEPS = 10_000
_MOST_PRODUCTS = 1 << 32


@dataclass(frozen=True, eq=False)
class MatrixLinear:
    """The unbiased estimate r-hat = L f of shares, from the shares f of the outputs, where L is the inverse of Q^T.

    The cells are multinomial, so Cov[r-hat] = (L diag(f) L^T - r-hat r-hat^T) / n; see ``Linear``.
    """

    inverse: Floats
    cells: Counts
    reports: int

    @cached_property
    def values(self) -> Floats:
        """Shape (|Z|,): r-hat."""
        return np.asarray(self.inverse @ (self.cells / self.reports))

    @property
    def variance(self) -> Floats:
        """Shape (|Z|,): the diagonal of the covariance."""
        variance: Floats = (self.inverse**2 @ (self.cells / self.reports) - self.values**2) / self.reports
        return np.maximum(variance, 0.0)

    @property
    def n(self) -> Counts:
        """Shape (|Z|,): the number of all reports, for each symbol."""
        return np.full(len(self.cells), self.reports)

    def interval(self, coverage: float) -> tuple[Floats, Floats]:
        """Return normal intervals of the reports and a few that nobody sent.

        An entry is the mean of a number for each report, an element of its row of the inverse. As Agresti and Coull do
        (The American Statistician 52, 1998) for two numbers, this adds z^2 reports, half with the largest number of
        the row and half with the least. Without these, the spread of few reports that hit few outputs seems too small:
        95 % intervals of 300 reports of 100 values cover .89.
        """
        z = NormalDist().inv_cdf((1 + coverage) / 2)
        f, added, n = self.cells / self.reports, z**2 / (self.reports + z**2), self.reports + z**2
        least, most = self.inverse.min(axis=1), self.inverse.max(axis=1)
        mean = (1 - added) * self.values + added * (least + most) / 2
        square = (1 - added) * (self.inverse**2 @ f) + added * (least**2 + most**2) / 2
        half = z * np.sqrt(np.maximum(square - mean**2, 0.0) / n)
        return mean - half, mean + half

    def times(self, w: Floats) -> Floats:
        """Return Cov @ w."""
        f = self.cells / self.reports
        product: Floats = self.inverse @ (f[:, np.newaxis] * (self.inverse.T @ w)) - np.outer(
            self.values, self.values @ w
        )
        return product / self.reports


class MatrixDecoder(Decoder):
    """Estimates the shares of values from the number of reports of each output.

    - "empirical": unbiased, by the inverse of the matrix; entries may be negative.
    - "em": maximum likelihood by expectation-maximization, on the simplex. The likelihood of the cells is multinomial,
      so EM on cells is EM on reports. It fits the noise of the cells, which near values then show as peaks.
    - "auto": the same, but it starts uniform and stops as soon as the cells are as near as honest noise brings them:
      Pearson's distance is its expectation, the number of outputs less one (Morozov's discrepancy principle).

    Intervals and standard errors are those of the unbiased estimate, for users' values that are drawn i.i.d.; intervals
    lean to the middle a little at few reports.

    Args:
        mechanism: The mechanism of the reports.
        simultaneous: Whether all intervals of a table are to cover the truth at once (Bonferroni), or each alone.
    """

    estimators = ("auto", "empirical", "em")

    def __init__(self, mechanism: MetricMechanism, *, simultaneous: bool = False) -> None:
        self.mechanism = mechanism
        self._simultaneous = simultaneous

    @cached_property
    def _inverse(self) -> Floats:
        return np.asarray(np.linalg.inv(self.mechanism.matrix.T), dtype=np.float64)

    @property
    def _weight(self) -> float:
        """The number of users for whom the heaviest report counts; a share lies between 0 and 1."""
        return float(max(self._inverse.max(), 1 - self._inverse.min()))

    def heaviest(self, table: Table) -> float | None:
        """See the base class."""
        return self._weight

    def check(self, cells: Counts, n: int) -> None:
        """Raise ValueError if the cells are not the outputs of n reports."""
        require_output_counts(cells, n, self.mechanism.size)

    def linear(self, cells: Counts, n: int) -> MatrixLinear:
        """Return the unbiased estimate of the shares.

        Raises:
            ValueError: if ``n`` is not positive, or the cells do not fit.
        """
        self.check(cells, n)
        require_reports(n)
        return MatrixLinear(self._inverse, cells, n)

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Return how probable it is that some output has so few or so many of n honest reports.

        Whatever users hold, the probability of an output is between those for the symbols that are the farthest from
        it and the symbol itself. So its number is stochastically between binomial ones, given values or drawn, at every
        n; Bonferroni's bound takes all outputs. The test does not see forged reports within these bounds.
        """
        self.check(cells, n)
        if n <= 0:
            return {}
        least, most = self.mechanism.matrix.min(axis=0), self.mechanism.matrix.max(axis=0)
        return {Flag.IMPROBABLE_COUNTS: outside_p_value(cells, n, least, most)}

    def forecast(self, n: int) -> Floats:
        """Return the standard errors at n reports of uniform symbols, shape (|Z|,)."""
        r = equal_shares(self.mechanism.size)
        return np.sqrt((self._inverse**2 @ (r @ self.mechanism.matrix) - r**2) / n)

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        """Yield how often a report names the true value, what a client needs, and the error at n reports."""
        own = self.mechanism.matrix.diagonal()
        yield (
            "outputs",
            (
                f"a report names the true value with probability {own.min():.3g} to {own.max():.3g};"
                f" the scale is {self.mechanism.scale!r}"
            ),
        )
        yield heaviest_fact(self._weight, n)
        yield "errors", one_simulation_text(self.simulate, self.mechanism.size, estimator, n, self.forecast(n))

    def simulate(self, r: Floats, n: int, estimator: str, rng: Generator) -> Floats:
        """Draw a window of n reports, and return the errors of the published shares; see ``SharesDecoder``."""
        m = r @ self.mechanism.matrix
        return self._shares(rng.multinomial(n, m / m.sum()), n, estimator) - r

    def tables(self, cells: Counts, n: int, estimator: str) -> tuple[Table, ...]:
        """Return the table of shares.

        Raises:
            ValueError: if ``n`` is not positive, the cells do not fit, or the decoder has no such estimator.
        """
        self.require(estimator)
        linear = self.linear(cells, n)
        shares = self._shares(cells, n, estimator)
        return (table_without_tags(shares, linear, n, basis=Basis.NORMAL, simultaneous=self._simultaneous),)

    def _shares(self, cells: Counts, n: int, estimator: str) -> Floats:
        if estimator == "empirical":
            return self.linear(cells, n).values
        return em(self.mechanism.matrix, cells, n, near_enough=len(cells) - 1 if estimator == "auto" else 0)


def em(matrix: Floats, cells: Counts, n: int, near_enough: float = 0.0) -> Floats:
    """Return the shares after EM on the cells of n reports, from uniform ones; it stops as ``ems`` does, or before.

    Large domains have fewer steps at the most, from 10,000 below 655 values to 256 at 4,096, so that a window takes
    seconds: EM is then short of the maximum, which would have fitted more of the noise.

    Args:
        matrix: Shape (|Z|, outputs): the positive probability of each output for each symbol.
        cells: Shape (outputs,): the number of reports of each output.
        n: Their sum, positive.
        near_enough: Pearson's distance of the cells from their expectation at which to stop.
    """
    f, shares, last = cells / n, equal_shares(len(matrix)), -math.inf
    for _ in range(min(_MAX_STEPS, _MOST_PRODUCTS // matrix.size)):
        probability = shares @ matrix
        likelihood = float(cells @ np.log(probability))
        distance = n * float(((f - probability) ** 2 / probability).sum())
        if distance <= near_enough or abs(likelihood - last) < TOLERANCE:
            break
        last = likelihood
        shares = shares * (matrix @ (f / probability))
    return shares
