"""The interface of everything that reads a statistic: tests of its cells, the unbiased estimate, and the tables."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.laws.interval import normal_quantile
from uldp.mechanisms.protocol.encoding import Encoding
from uldp.schemas.arrays import Counts, Floats, Symbols
from uldp.schemas.errors import RequestError
from uldp.schemas.flags import Flag
from uldp.schemas.specs.kinds import Range
from uldp.schemas.table import Table, TableName

#: Seeds each simulation, so that a forecast is a function of its arguments.
SEED = 17
#: The headings of the facts that depend on the number of reports.
DEPENDS_ON_N = ("forged", "heaviest", "errors")


def require_reports(n: int) -> None:
    """Raise ValueError if there are no reports to estimate from."""
    if n <= 0:
        raise ValueError(f"an estimate needs one report or more, got n={n}")


def require_output_counts(cells: Counts, n: int, outputs: int) -> None:
    """Raise ValueError if the cells are not how often n reports have each of so many outputs."""
    if cells.shape != (outputs,):
        raise ValueError(f"the cells have shape {cells.shape}, but there are {outputs} outputs")
    if cells.min() < 0 or cells.sum() != n:
        raise ValueError(f"the cells sum to {cells.sum()}, and the least is {cells.min()}, with n={n}")


def heaviest_fact(weight: float, n: int) -> tuple[str, str]:
    """Return the fact by how much a forged report moves a share, if it counts for ``weight`` users."""
    points = f"{100 * weight / n:.3g} points, and 1 % of them by up to {weight:.3g}"
    return "heaviest", f"one forged report of {n:,} moves a share by up to {points}"


def two_digits(number: float) -> int:
    """Round a number up to two significant digits, and at least to a whole number.

    >>> two_digits(10_401)
    11000
    """
    step = int(10 ** max(math.floor(math.log10(number)) - 1, 0))
    return math.ceil(number / step) * step


class Cost(StrEnum):
    """In which panes an estimator runs."""

    #: In each pane: it takes some milliseconds.
    PANE = "pane"
    #: In on-time and late panes alone: it takes so long that early panes would hold up the job.
    FINAL = "final"


class Pooling(StrEnum):
    """How the estimates of several versions become one."""

    #: Shares of values, each version weighted by its precision.
    SHARES = "shares"
    #: A number, likewise.
    NUMBERS = "numbers"
    #: Each variable of a record alone.
    VARIABLES = "variables"


class Part(NamedTuple):
    """The part of a statistic that is about one variable: its name and decoder, its cells, and their reports."""

    name: str
    decoder: "Decoder"
    cells: Counts
    n: int


class Errors(NamedTuple):
    """The expected errors of published shares; of strings, with the least share that is found in place of l1."""

    l1: float  # the l1 distance between them and the truth, at most 2; of sets at most 2 l, if a device reports l items
    l2: float  # the l2 distance
    half_width: float  # half of the width of an interval that covers a share with 95 %, the mean over values
    #: The standard error of ``l1`` over the simulated windows; infinite of one window, and 0 of none.
    l1_stderr: float = 0.0


class Decoder(ABC):
    """Reads a statistic: the cells (shape (statistic_size,), int64) and the number n of counted reports.

    A decoder holds the half of a spec that devices need not know. Building another one never changes cells.

    Attributes:
        estimators: The names of its estimators; the first is the default.
        quantity: What ``linear`` estimates, where that is no share.
        names: The strings whose shares are estimated; None if the values are those of the domain.
        pooling: How versions are pooled; None if they are not.
        needs_truth: Whether ``errors`` depend on the true shares of values.
    """

    estimators: tuple[str, ...]
    quantity: TableName = TableName.MEAN
    names: tuple[str, ...] | None = None
    pooling: Pooling | None = None
    needs_truth: bool = False

    @property
    def number_of_bins(self) -> int | None:
        """How many bins of a range are estimated; None if there are no bins."""
        return None

    def of_all(self, cells: Counts, n: int) -> Part:
        """Return the statistic of all users together, and its decoder: if reports name a slice, the sum of slices."""
        return Part("", self, cells, n)

    def variables(self, cells: Counts, n: int, names: Sequence[str]) -> Iterator[Part]:
        """Yield each variable that has reports, with a decoder whose ``linear`` is about it alone.

        The names are those of the variables of the collection; "" if it has one.
        """
        if n:
            yield Part("", self, cells, n)

    @property
    def without_sizes(self) -> "Decoder":
        """The decoder of the items of sets, where some users report the size of their set; otherwise this one."""
        return self

    def tags_at(self, cells: Counts, n: int) -> Encoding | None:
        """Return the values and tags that ``linear`` is about, a ``Pum``; None if the spec alone knows them."""
        return None

    def range_table(
        self, cells: Counts, n: int, ranges: Sequence[Range], estimator: str, repeats: float = 0.0
    ) -> Table:
        """Return the shares of ranges of bins, with intervals.

        ValueError if there are no bins, the cells do not fit, or no report is about a bin.
        """
        raise RequestError("the mechanism has no ranges of numbers; tree has, and block")

    def quantile_table(
        self, cells: Counts, n: int, levels: Sequence[float], estimator: str, repeats: float = 0.0
    ) -> Table:
        """Return the quantiles at ascending levels between 0 and 1, with intervals; see ``range_table``."""
        raise RequestError("the mechanism has no quantiles; tree has, and block")

    def explain(self, cells: Counts, n: int, position: int) -> Iterator[str]:
        """Yield how one of the values of ``linear`` follows from the cells, each step a heading and a text."""
        yield from ()

    def received(self, cells: Counts, n: int) -> Floats | None:
        """Return the share of the reports that support each value, as they came, shape (|X|,).

        None if a report does not support values of the domain, as one about a number. ``n`` is positive.
        """
        return None

    def guesses(self, cells: Counts, n: int, values: int) -> Symbols:
        """Return the most probable value of each of some devices: unless a decoder knows better, the largest estimate.

        Cells, shape (devices, cells), are the statistics of the n reports of each device.
        """
        return np.array([self.linear(each, n).values[:values].argmax() for each in cells])

    def known(self, estimator: str) -> str:
        """Return this estimator if the decoder has it, or its default."""
        return estimator if estimator in self.estimators else self.estimators[0]

    def require(self, estimator: str) -> None:
        """Raise ValueError if the decoder has no such estimator."""
        if estimator not in self.estimators:
            raise ValueError(f"no estimator {estimator!r}; choose one of {', '.join(self.estimators)}")

    def cost(self, estimator: str) -> Cost:
        """Return in which panes an estimator runs; early panes leave out those that are ``FINAL``."""
        return Cost.PANE

    @abstractmethod
    def check(self, cells: Counts, n: int) -> None:
        """Raise ValueError if no n reports give these cells."""

    def reports(self, cells: Counts, n: int) -> tuple[int, ...]:
        """Return the number of reports behind the tables, or the numbers, if strata have tables of their own.

        ValueError if the cells do not fit.
        """
        return (n,)

    @abstractmethod
    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        """Return the unbiased estimate; ValueError if ``n`` is not positive, or the cells do not fit.

        ``repeats`` is in how many other windows of the sum the device of a report has another: see
        ``Estimate.repeated``.
        """

    def tested(self, table: Table) -> int:
        """Return how many names were tested for whether anybody holds them, of one of its tables of p-values.

        These are its entries, unless the decoder leaves out names that it has tested.
        """
        return len(table.values)

    def heaviest(self, table: Table) -> float | None:
        """Return the number of reports for which the heaviest forged one counts in the entries of one of its tables.

        So one of the n reports of the table moves an entry by 1/n of this, at the most, in units of the entry: of a
        share by as many users' part, of a number in its own units. None if that is not known, or if the table has no
        intervals.
        """
        return None

    def forged_ends(self, table: Table, cells: Counts, forged: float) -> tuple[Floats, Floats] | None:
        """Return ends of the intervals of one of its tables that allow for so many forged reports; None if not known.

        These move both ends outwards by the part of the table's reports that is forged, times ``heaviest``. All of them
        may be about this table. The ends, in its units, may lie outside of its range.
        """
        weight = self.heaviest(table)
        if weight is None or table.low is None or table.high is None:
            return None
        moved = min(forged / table.n, 1.0) * weight
        return table.low - moved, table.high + moved

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Return how probable cells as improbable as these are, by the flag that a small p-value raises.

        Each is an upper bound under every distribution of true values. A test that n is too small for is left out.
        """
        return {}

    def p_values_of_each(self, windows: Sequence[tuple[Counts, int]]) -> list[Mapping[Flag, float]]:
        """Return ``p_values`` of several windows, each its cells and n; a decoder may test them together."""
        return [self.p_values(*window) for window in windows]

    @abstractmethod
    def forecast(self, n: int) -> Floats:
        """Return the standard errors of the values of ``linear`` to expect from n reports of uniform true values."""

    def errors(self, r: Floats, n: int, estimator: str, windows: int) -> Errors:
        """Return the errors to expect of the published shares of n reports.

        If the decoder ``needs_truth``, they are those of the distribution ``r`` of true symbols; of sets, it sums to l.
        """
        raise NotImplementedError("the errors of these estimates are not known beforehand")

    @property
    def weight(self) -> float:
        """The number of users for whom the heaviest report counts, in the shares that ``errors`` is about."""
        raise NotImplementedError("the weight of these reports is not known beforehand")

    def symbol_shares(self, weights: Floats) -> Floats:
        """Return the distribution of the symbols of users whose values have these weights."""
        return weights

    @abstractmethod
    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        """Yield facts about the estimates for ``uldp check``, each a heading of one word and a text of one line.

        The last facts, under the headings of ``DEPENDS_ON_N``, depend on the number of reports.
        """

    def warnings(self, n: int, users: int, estimator: str) -> Iterator[str]:
        """Yield a line for each probable mistake of a spec with this decoder.

        A window has n reports of so many users: of a record, each reports one attribute.
        """
        yield from ()

    @abstractmethod
    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        """Return the tables that an estimator publishes; see ``linear`` for the arguments.

        ValueError if ``n`` is not positive, the cells do not fit, or the decoder has no such estimator.
        """

    def tables_of_each(self, windows: Sequence[tuple[Counts, int]], estimator: str) -> list[tuple[Table, ...]]:
        """Return ``tables`` of several windows, each its cells and n; a decoder may estimate them together."""
        return [self.tables(*window, estimator) for window in windows]


class FindingDecoder(Decoder):
    """A decoder of shares of strings that says beforehand which of them it will find."""

    @abstractmethod
    def error(self, n: int) -> float:
        """Return the standard error of the share of a rare string at n reports."""

    @abstractmethod
    def least_found(self, n: int) -> float:
        """Return the share of a string that n reports find with a probability of one half."""

    def errors(self, r: Floats, n: int, estimator: str, windows: int) -> Errors:
        error = self.error(n)
        return Errors(min(self.least_found(n), 1.0), error, float(normal_quantile(0.975) * error))


class SharesDecoder(Decoder):
    """A decoder of shares of values that says beforehand how well it will know them, for a distribution of symbols."""

    needs_truth = True

    @abstractmethod
    def simulate(self, r: Floats, n: int, estimator: str, rng: Generator) -> Floats:
        """Draw a window of n reports, and return the errors of the published shares, if backgrounds are right."""

    @abstractmethod
    def stderr(self, r: Floats, n: int) -> Floats:
        """Return the standard errors of the unbiased shares, given ``r`` and what is behind tags, (|X|,)."""

    def errors(self, r: Floats, n: int, estimator: str, windows: int) -> Errors:
        rng = np.random.default_rng(SEED)
        errors = [self.simulate(r, n, estimator, rng) for _ in range(windows)]
        l1 = np.array([np.abs(each).sum() for each in errors])
        return Errors(
            min(float(l1.mean()), 2.0 * max(round(float(r.sum())), 1)),
            float(np.mean([np.linalg.norm(each) for each in errors])),
            float(normal_quantile(0.975) * self.stderr(r, n).mean()),
            float(l1.std(ddof=1) / np.sqrt(windows)) if windows > 1 else math.inf,
        )
