"""The counts of a version over a span of time, as one number of reports and one vector of cells."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.inference.assumed_forgers import with_forgers
from uldp.mechanisms.protocol.decoder import Decoder
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.questions.periods import Period
from uldp.schemas.arrays import Counts
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import Table


@dataclass(frozen=True, eq=False)
class Version:
    """A version of a collection, with its protocol, which takes long to build.

    Attributes:
        spec: Its spec.
    """

    spec: CollectionSpec

    @cached_property
    def protocol(self) -> LdpProtocol:
        """The protocol of the spec."""
        return build_protocol(self.spec)

    @property
    def decoder(self) -> Decoder:
        """What reads the cells."""
        return self.protocol.decoder


@dataclass(frozen=True, eq=False)
class Span:
    """The sum of the counts of windows that have no report in common.

    Attributes:
        version: The version that they are of.
        period: From the start of the first to the end of the last, or the period of a calendar that holds them.
        cells: Shape (statistic_size,): the sums of their cells.
        sizes: The number of counted reports of each window that has one, in the order of their starts.
        apart: Of each part of a record, the reports of windows of few reports, whose cells nobody else may read; of
            other collections, one number.
        accounting: The sum over the windows.
        flags: Those of any window.
    """

    version: Version
    period: Period
    cells: Counts
    sizes: tuple[int, ...]
    apart: tuple[int, ...]
    accounting: Accounting
    flags: tuple[str, ...]

    @property
    def n(self) -> int:
        """The number of counted reports."""
        return sum(self.sizes)

    def __add__(self, other: "Span") -> "Span":
        """Return the sum of this span and a later one."""
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

    def passes(self) -> bool:
        """Return whether the sum may be shown: neither it, nor the windows in it that are apart, have few reports.

        Other windows may be published on their own. Who subtracts them from the sum sees the sum of those apart.
        """
        least = self.version.spec.limits.min_reports
        return self.n >= least and all(n == 0 or n >= least for n in self.apart)

    def tables(self, estimator: str) -> tuple[Table, ...]:
        """Return the tables of an estimator, each of enough reports, as those of a window."""
        spec, decoder = self.version.spec, self.version.decoder
        tables = decoder.tables(self.cells, self.n, estimator)
        enough = tuple(table for table in tables if table.n >= spec.limits.min_reports)
        if spec.assume_forgers is None:
            return enough
        return tuple(with_forgers(table, decoder, spec.assume_forgers, self.cells, self.n) for table in enough)
