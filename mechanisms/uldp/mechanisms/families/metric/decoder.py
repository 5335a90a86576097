"""The decoder of a mechanism whose outputs have any known probabilities: a matrix in place of a p and a q."""

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.decoders.table_of import table_of
from uldp.mechanisms.estimators.choice import Scoring, chosen, part_of_cells
from uldp.mechanisms.estimators.ems import TOLERANCE
from uldp.mechanisms.estimators.simplex import Box, box_of, onto_simplex
from uldp.mechanisms.families.metric.randomizer import MetricMechanism
from uldp.mechanisms.inference.forecast import equal_shares, one_simulation_text
from uldp.mechanisms.kernels.intervals import outside_p_value
from uldp.mechanisms.laws.estimate import Estimate, part_of
from uldp.mechanisms.laws.law import Outputs
from uldp.mechanisms.protocol.decoder import Decoder, heaviest_fact, require_output_counts, require_reports
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.table import INTERVAL_LEVEL, Table, TableName

# EM stops after so many steps at the latest, and before that after so many products: a step takes one for each entry of
# the matrix, twice, and these take some seconds.
_MAX_STEPS = 10_000
_MOST_PRODUCTS = 1 << 32


class MatrixDecoder(Decoder):
    """Estimates the shares of values from the number of reports of each output.

    - "empirical": unbiased, by the inverse of the matrix; entries may be negative.
    - "em": maximum likelihood by expectation-maximization, on the simplex. The likelihood of the cells is multinomial,
      so EM on cells is EM on reports. It fits the noise of the cells, which near values then show as peaks.
    - "auto": the better of two on held-out reports, inside of all intervals at once; see ``estimators.choice``. One is
      EM that starts uniform and stops as soon as the cells are as near as honest noise brings them: Pearson's distance
      is its expectation, the number of outputs less one (Morozov's discrepancy principle). The other is the
      distribution that is nearest to the unbiased estimate, weighted by its variances at equal shares.

    Intervals and standard errors are those of the unbiased estimate r-hat = L f of the shares f of the outputs, where L
    is the inverse of Q^T. They hold for users' values that are drawn i.i.d.
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
        return self._weight

    def check(self, cells: Counts, n: int) -> None:
        require_output_counts(cells, n, self.mechanism.size)

    def received(self, cells: Counts, n: int) -> Floats:
        return np.asarray(cells / n)

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        """See the base class. The errors are at the nearest distribution; "auto" has smoother shares."""
        self.check(cells, n)
        require_reports(n)
        unbiased = np.asarray(self._inverse @ (cells / n))
        part = part_of(self._law, onto_simplex(unbiased), n)
        return Estimate(unbiased, np.full(len(unbiased), n), (part,)).repeated(repeats)

    @cached_property
    def _law(self) -> Outputs:
        return Outputs(self._inverse, self.mechanism.law)

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Test each output, with Bonferroni's bound, at every n.

        Whatever users hold, its probability is between those for the symbols that are the farthest from it and the
        symbol itself. So its number is stochastically between binomial ones. Forged reports within them are not seen.
        """
        self.check(cells, n)
        if n <= 0:
            return {}
        least, most = self.mechanism.matrix.min(axis=0), self.mechanism.matrix.max(axis=0)
        return {Flag.IMPROBABLE_COUNTS: outside_p_value(cells, n, least, most)}

    def forecast(self, n: int) -> Floats:
        r = equal_shares(self.mechanism.size)
        return np.sqrt((self._inverse**2 @ (r @ self.mechanism.matrix) - r**2) / n)

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        own = self.mechanism.matrix.diagonal()
        named = f"a report names the true value with probability {own.min():.3g} to {own.max():.3g}"
        yield "outputs", f"{named}; the scale is {self.mechanism.scale!r}"
        yield heaviest_fact(self._weight, n)
        yield "errors", one_simulation_text(self.simulate, self.mechanism.size, estimator, n, self.forecast(n))

    def simulate(self, r: Floats, n: int, estimator: str, rng: Generator) -> Floats:
        """Draw a window of n reports, and return the errors of the published shares; see ``SharesDecoder``."""
        m = r @ self.mechanism.matrix
        return self._shares(rng.multinomial(n, m / m.sum()), n, estimator) - r

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        self.require(estimator)
        linear, shares = self.linear(cells, n, repeats), self._shares(cells, n, estimator)
        return (table_of(TableName.SHARE, shares, linear, simultaneous=self._simultaneous, whole=True),)

    def _shares(self, cells: Counts, n: int, estimator: str) -> Floats:
        if estimator == "empirical":
            return self.linear(cells, n).values
        if estimator == "em":
            return np.asarray(em(self.mechanism.matrix, cells[np.newaxis], n)[0])
        return chosen((self._near_enough, self._nearest), cells, n, self._scoring(cells, n))

    def _near_enough(self, cells: Counts, n: int, box: Box) -> Floats:
        return onto_simplex(em(self.mechanism.matrix, cells, n, self.mechanism.size - 1), 1.0, 0.0, *box)

    def _nearest(self, cells: Counts, n: int, box: Box) -> Floats:
        return onto_simplex(self._unbiased(cells, n), self.forecast(n) ** 2, 0.0, *box)

    def _unbiased(self, cells: Counts, n: int) -> Floats:
        return np.asarray(cells / n @ self._inverse.T)

    def _scoring(self, cells: Counts, n: int) -> Scoring:
        linear = self.linear(cells, n)

        def box(cells: Counts, n: int) -> Box:
            coverage = 1 - (1 - INTERVAL_LEVEL) / self.mechanism.size
            rows = [self.linear(row, n).interval(coverage) for row in cells]
            return box_of(*np.swapaxes(rows, 0, 1))

        return Scoring(part_of_cells, self._unbiased, lambda w: n * linear.times(w), box)


def em(matrix: Floats, cells: Counts, n: int, near_enough: float = 0.0) -> Floats:
    """Return the shares after EM on cells, shape (rows, outputs), each row with the sum n, from uniform shares.

    It stops as ``ems`` does, or where Pearson's distance of the cells from their expectation is ``near_enough``. Large
    domains have fewer steps at the most, from 10,000 below 655 values to 256 at 4,096, so that a window takes seconds:
    EM is then short of the maximum, which would have fitted more of the noise. ``matrix`` is positive.
    """
    f, shares = cells / n, np.tile(equal_shares(len(matrix)), (len(cells), 1))
    last, going = np.full(len(cells), -np.inf), np.arange(len(cells))
    for _ in range(min(_MAX_STEPS, _MOST_PRODUCTS // matrix.size)):
        probability = shares[going] @ matrix
        likelihood = (cells[going] * np.log(probability)).sum(axis=1)
        distance = n * ((f[going] - probability) ** 2 / probability).sum(axis=1)
        further = (distance > near_enough) & (np.abs(likelihood - last[going]) >= TOLERANCE)
        last[going] = likelihood
        going, probability = going[further], probability[further]
        if not len(going):
            break
        shares[going] *= (f[going] / probability) @ matrix.T
    return shares
