"""The counts of a version over a span of time, as one number of reports and one vector of cells; or of several."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.inference.forgery import all_with_forgers
from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.pooling.pooled_tables import PooledTables, VersionCounts, pooled_tables
from uldp.mechanisms.protocol.decoder import Decoder, Part
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.questions.periods import Period
from uldp.schemas.arrays import Counts
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.budget import Budget
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import milliseconds
from uldp.schemas.table import Table

#: What all answers assume.
DRAWN = "users are drawn independently, and each report is of one of them"


# Numbers of nats from here on are written without decimals.
_WHOLE = 1_000


class Spent(NamedTuple):
    """The most that a user spends on reports in several windows, in nats."""

    whatever: float  # whatever the user's values are in these windows
    #: If the value stays as it is in all of them. It is less where devices keep a response to each value.
    one_value: float

    def text(self) -> str:
        """Say both numbers, or the one if they are equal."""
        if self.whatever == self.one_value:
            return f"epsilon {_nats(self.whatever)} at most"
        stays, changes = _nats(self.one_value), _nats(self.whatever)
        return f"epsilon {stays} at most on a value that stays, {changes} on values that change"


def _nats(number: float) -> str:
    return f"{number:.4g}" if number < _WHOLE else f"{number:,.0f}"


def spent(epsilon: float | None, lasting: float | None, budget: Budget | None, reports: int, span: int) -> Spent | None:
    """Return the most that a user spends on reports in several windows; None without privacy.

    Values of one user add up, and a value spends ``epsilon`` with one report, and ``lasting`` with two or more. So the
    most is spent by another value in each window, or if ``lasting`` is more than twice epsilon, in every second one.
    A budget does not bound that: devices have paid for the responses to values of before, and send them again for free.
    ``reports`` are the windows in which the user reports, and ``span`` are the milliseconds from the first window's
    start to the last window's end.
    """
    if epsilon is None:
        return None
    each = epsilon * reports
    if lasting is not None:
        twice, once = divmod(reports, 2)
        return Spent(max(each, twice * lasting + once * epsilon), epsilon if reports == 1 else lasting)
    if budget is not None:
        each = min(each, budget.epsilon * -(-span // milliseconds(budget.every)))
    return Spent(each, each)


@dataclass(frozen=True, eq=False)
class Version:
    """A version of a collection, with its protocol, which takes long to build."""

    spec: CollectionSpec
    slices: str = ""  # the slices that the counts are of, as ``os=ios``; empty for all
    sliced: "Version | None" = None  # the version with slices whose counts are added; None if it has none

    @cached_property
    def protocol(self) -> LdpProtocol:
        """The protocol of the spec."""
        return (self.sliced and self.sliced.protocol.of_slice) or build_protocol(self.spec)

    @property
    def decoder(self) -> Decoder:
        """What reads the cells."""
        return self.protocol.decoder


@dataclass(frozen=True, eq=False)
class Span:
    """The sum of the counts of windows that have no report in common; of several versions, the sum of each."""

    #: The version that they are of; of several the newest, whose labels, background and limits then hold.
    version: Version
    period: Period  # from the start of the first to the end of the last, or the period of a calendar that holds them
    cells: Counts  # shape (statistic_size,): the sums of their cells, of this version
    sizes: tuple[int, ...]  # the number of counted reports of each window that has one, in the order of their starts
    #: Of each part of a record, the reports of windows of few reports, whose cells nobody else may read; of other
    #: collections, one number.
    apart: tuple[int, ...]
    accounting: Accounting
    flags: tuple[str, ...]
    #: Of several versions, a span of each, the newest last, whose estimates are pooled; else empty.
    of_versions: "tuple[Span, ...]" = ()

    @property
    def n(self) -> int:
        """The number of counted reports."""
        return sum(self.sizes)

    def __add__(self, other: "Span") -> "Span":
        """Return the sum of this span and a later one of the same version."""
        first, last = self.period, other.period
        name = f"{first.name.split(' to ')[0]} to {last.name.split(' to ')[-1]}"
        return Span(
            self.version,
            Period(first.start, last.end, name),
            self.cells + other.cells,
            self.sizes + other.sizes,
            tuple(np.add(self.apart, other.apart).tolist()),
            self.accounting + other.accounting,
            tuple(dict.fromkeys(self.flags + other.flags)),
        )

    @property
    def spans(self) -> "tuple[Span, ...]":
        """A span of each version."""
        return self.of_versions or (self,)

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of reports, each of which must be 0 or enough; see ``passes``."""
        return (self.n, *self.apart)

    @property
    def versions(self) -> tuple[int, ...]:
        """The numbers of the versions."""
        return tuple(span.version.spec.version for span in self.spans)

    def passes(self) -> bool:
        """Return whether a sum may be shown: neither it, nor the windows in it that are apart, have few reports."""
        least = self.version.spec.limits.min_reports
        if self.of_versions:
            return all(span.passes() for span in self.of_versions)
        return self.n >= least and all(n == 0 or n >= least for n in self.counts)

    @cached_property
    def _pooled(self) -> PooledTables:
        return pooled_tables(
            [VersionCounts(span.version.decoder, span.cells, span.n, span.repeats) for span in self.of_versions]
        )

    def tables(self, estimator: str) -> tuple[Table, ...]:
        """Return the tables of an estimator, each of enough reports, as those of a window; or the pooled tables."""
        spec, decoder = self.version.spec, self.version.decoder
        several = bool(self.of_versions)
        tables = self._pooled.tables if several else decoder.tables(self.cells, self.n, estimator, self.repeats)
        enough = tuple(table for table in tables if table.n >= spec.limits.min_reports)
        if several or spec.assume_forgers is None:
            return enough
        return all_with_forgers(enough, decoder, spec.assume_forgers, self.cells, self.n)

    @cached_property
    def assumed(self) -> str:
        """What the errors of an answer take as true besides the specs; one sentence."""
        kept = "; devices keep their responses, and may be the same in all windows" if self.repeats else ""
        if not self.of_versions:
            return f"{DRAWN}{kept}"
        number, compared = self._pooled.contradictory, self._pooled.compared
        contradicting = f", though they contradict each other in {number:,} of {compared:,} numbers" if number else ""
        return f"{DRAWN}{kept}; the users of versions {names(self.versions)} are of one population{contradicting}"

    @cached_property
    def spent(self) -> Spent | None:
        """The most that a user with a report in each window of each version has spent; None without privacy."""
        return spent_over(self.spans)

    @property
    def repeats(self) -> float:
        """In how many other windows the device of a report has a dependent one; of versions, the largest."""
        return max(repeats(span.sizes) if span.version.protocol.mechanism.memory else 0.0 for span in self.spans)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The part of the cells that is about each variable."""
        return tuple(self.version.decoder.variables(self.cells, self.n, list(self.version.spec.variables)))


def names(versions: Sequence[int]) -> str:
    """Write numbers of versions: ``1, 2 and 3``."""
    *others, last = map(str, versions)
    return f"{', '.join(others)} and {last}" if others else last


def spent_over(spans: Sequence[Span]) -> Spent | None:
    """Return the most that a user spends with a report in each window, or slice; None without privacy."""
    whatever = one_value = 0.0
    for version in {span.version for span in spans}:
        mine, spec = [span for span in spans if span.version is version], version.spec
        guarantee = version.protocol.mechanism.guarantee
        slices = spec.window.size // spec.window.slice if guarantee.lasting is None else 1
        reports = slices * sum(len(span.sizes) for span in mine)
        length = max(span.period.end for span in mine) - min(span.period.start for span in mine)
        most = spent(guarantee.epsilon, guarantee.lasting, spec.budget, reports, length)
        if most is None:
            return None
        whatever, one_value = whatever + most.whatever, one_value + most.one_value
    return Spent(whatever, one_value)


def repeats(sizes: Sequence[float]) -> float:
    """Return in how many other windows the device of a report has another, in the mean over all reports, at the most.

    It is the sum of min(n_s, n_t) over all s != t, over the sum of n, the reports of a window: T - 1 if equal.
    The collector does not know which devices are in two windows. A covariance of those that keep responses is never
    negative. So a mean or a sum is taken to be of the same devices, and a difference of others, unless the caller says
    that they are the same.
    """
    ordered = np.sort(np.asarray(sizes, dtype=np.float64))
    later = np.arange(len(ordered))[::-1]
    return float(2 * (ordered * later).sum() / ordered.sum())


def of_same_devices(after: Estimate, before: Estimate, sizes: tuple[Sequence[int], Sequence[int]]) -> Estimate:
    """Return a difference of windows, where the devices of those with fewer reports are among those of the others.

    They hold what they held, so the difference has less noise than of other devices. If the law of the responses is not
    known, no covariance is taken off, which leaves the difference more error than it has.
    """
    shares = [np.asarray(each, dtype=np.float64) / sum(each) for each in sizes]

    def shared(after_n: float, before_n: float) -> float:
        # How many pairs of reports of both have one device, over the number of all pairs.
        pairs = np.minimum.outer(shares[0] * after_n, shares[1] * before_n).sum()
        return float(pairs / (after_n * before_n))

    return after.less_dependent(before, shared)
