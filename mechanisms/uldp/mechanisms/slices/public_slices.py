"""One mechanism whose reports name a slice openly: its strata, which the public attributes of a report choose.

Guarantee: that of the mechanism, between any two values of a user in one slice. The slice itself is public and not
protected: it must not depend on what the device holds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from uldp.mechanisms.decoders.strata_decoder import PartsDecoder
from uldp.mechanisms.encodings.strata_encoding import Choice, StrataEncoding, StratumSource
from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.protocol.decoder import Cost, Decoder, Part, require_reports
from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import Mechanism, Randomness
from uldp.mechanisms.randomizers.strata import MemoizedStrata, Strata
from uldp.schemas.arrays import Counts, Floats, Payloads, Symbols, Values
from uldp.schemas.flags import Flag
from uldp.schemas.specs.slices import Slices, attributes_of, slice_of, slice_text
from uldp.schemas.table import Table


class SlicedDecoder(PartsDecoder[Decoder]):
    """Reads the cells of each slice by the decoder of the mechanism, and their sum, which is that of all users.

    Users of one slice hold other values than those of another. So the tables of all users are those of the sum of
    the cells, in which each user counts once, and not a mean of the slices by the inverse of their variances.

    The public attributes are not drawn, so no number of reports of a slice is improbable.
    """

    drawn = False

    def __init__(self, protocol: LdpProtocol, strata: Strata, slices: Sequence[tuple[str, ...]]) -> None:
        self._inner, self._slices = protocol.decoder, tuple(slices)
        super().__init__([", ".join(name) for name in slices], [self._inner] * len(self._slices), strata)
        self.estimators = self._inner.estimators

    def cost(self, estimator: str) -> Cost:
        return self._inner.cost(estimator)

    def of_all(self, cells: Counts, n: int) -> Part:
        return Part("", self._inner, *self._total(cells))

    def _total(self, cells: Counts) -> tuple[Counts, int]:
        """Return the sum of the cells of all slices, and the number of their reports."""
        cells_of, reports = zip(*self.strata.split_cells(cells), strict=True)
        return np.sum(cells_of, axis=0), sum(reports)

    def reports(self, cells: Counts, n: int) -> tuple[int, ...]:
        each = ((part.cells, part.n) for part in self.parts(cells, n))
        return tuple(reports for own in (self._total(cells), *each) for reports in self._inner.reports(*own))

    def tested(self, table: Table) -> int:
        return self._inner.tested(_inside(table))

    def heaviest(self, table: Table) -> float | None:
        return self._inner.heaviest(_inside(table))

    def forged_ends(self, table: Table, cells: Counts, forged: float) -> tuple[Floats, Floats] | None:
        """See the base class. All forged reports may be in the slice of the table."""
        name = slice_of(table.of)
        own, _ = self.strata.split_cells(cells)[self._slices.index(name)] if name else self._total(cells)
        return self._inner.forged_ends(_inside(table), own, forged)

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        self.parts(cells, n)
        return self._inner.linear(*self._total(cells), repeats)

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Return the p-values of all slices together and of each: twice the less, with Bonferroni's correction."""
        apart = self._inner.p_values_of_each([(part.cells, part.n) for part in self.parts(cells, n) if part.n])
        together = self._inner.p_values(*self._total(cells)) if n else {}
        found: dict[Flag, float] = {}
        for flag in dict.fromkeys(chain(together, *apart)):
            own = [p_values[flag] for p_values in apart if flag in p_values]
            found[flag] = min(1.0, 2 * min(together.get(flag, 1.0), len(own) * min(own) if own else 1.0))
        return found

    def forecast(self, n: int) -> Floats:
        return self._inner.forecast(n)

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        slices = len(self._slices)
        equal = f"of {n // slices:,} users each if they are equal: errors {slices**0.5:.3g} times these"
        yield "slices", f"{slices:,}, {equal}"
        yield from self._inner.describe(n, estimator)

    def warnings(self, n: int, users: int, estimator: str) -> Iterator[str]:
        slices = len(self._slices)
        yield from self._inner.warnings(max(n // slices, 1), max(users // slices, 1), estimator)

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        if not repeats:
            return self.tables_of_each([(cells, n)], estimator)[0]
        self.require(estimator)
        return tuple(
            replace(table, of=(*table.of, *name))
            for name, own, reports in self._with_all(cells, n)
            for table in self._inner.tables(own, reports, estimator, repeats)
        )

    def tables_of_each(self, windows: Sequence[tuple[Counts, int]], estimator: str) -> list[tuple[Table, ...]]:
        """See the base class. The decoder of the mechanism estimates all slices of all windows together."""
        self.require(estimator)
        found = [self._with_all(*window) for window in windows]
        every = [(own, reports) for of_window in found for _, own, reports in of_window]
        tables = iter(self._inner.tables_of_each(every, estimator))
        return [
            tuple(replace(table, of=(*table.of, *name)) for name, _, _ in of_window for table in next(tables))
            for of_window in found
        ]

    def _with_all(self, cells: Counts, n: int) -> list[tuple[tuple[str, ...], Counts, int]]:
        """Return the name, cells and reports of all users, and of each slice that has any."""
        require_reports(n)
        each = zip(self._slices, self.parts(cells, n), strict=True)
        return [((), *self._total(cells)), *((name, part.cells, part.n) for name, part in each if part.n)]


def _inside(table: Table) -> Table:
    """Return a table as the decoder of its slice knows it."""
    return replace(table, of=attributes_of(table.of))


@dataclass(frozen=True)
class Named(Choice):
    """The public attributes of a report name its part: each has a column, of positions among its values."""

    columns: tuple[int, ...] = ()
    slices: Slices = field(default_factory=lambda: Slices({}))

    def parts(self, columns: Sequence[Held], strata: Strata, randomness: Randomness) -> Symbols:
        return self._numbers(columns)

    def law(self, columns: Sequence[Held], strata: Strata) -> Floats:
        law = np.zeros(len(strata.parts))
        law[self._numbers(columns)] = 1.0
        return law

    def device_form(self) -> DeviceForm:
        return {"form": "named", "by": {name: list(values) for name, values in self.slices.values.items()}}

    def _numbers(self, columns: Sequence[Held]) -> Symbols:
        numbers: Symbols = np.zeros(len(columns[0].values), dtype=np.int64)
        for number, size in zip(self.columns, self.slices.sizes, strict=True):
            numbers = numbers * size + np.asarray(columns[number].values, dtype=np.int64)
        return numbers


class SlicedStrata(Strata):
    """Strata whose parts are the slices of one mechanism."""

    def __init__(self, mechanism: Mechanism, slices: Slices) -> None:
        count = len(slices)
        super().__init__([mechanism] * count, [1 / count] * count, "slice")
        self.slices = slices
        public = (
            f"a report names its {' and '.join(slices.values)} openly: nothing protects them, and they must not depend"
            " on the value; the promise is about two values of users in one slice"
        )
        self.guarantee = replace(self.guarantee, public=public)

    def name_of(self, number: int) -> str:
        return slice_text(self.slices.names[number])


class MemoizedSlices(SlicedStrata, MemoizedStrata):
    """Slices whose devices keep one response for all slices: a device that changes its spends no more."""

    def kept_under(self, symbols: Values) -> Values:
        """See the base class: the symbols of the mechanism, whatever the slice."""
        return symbols % self.parts[0].size

    def renamed(self, permanent: Payloads, symbols: Values) -> Payloads:
        slices = self.parts_of(symbols)
        renamed = permanent.copy()
        for _, rows, own in self.split_payloads(permanent):
            for number in np.unique(slices[rows]).tolist():
                mine = slices[rows] == number
                renamed[rows[mine]] = self._wrap(number, own[mine])
        return renamed


def sliced(protocol: LdpProtocol, slices: Slices, columns: int) -> LdpProtocol:
    """Return a protocol whose reports name a slice, by columns behind those that the encoding reads."""
    kind = MemoizedSlices if protocol.mechanism.memory else SlicedStrata
    strata = kind(protocol.mechanism, slices)
    source = StratumSource(protocol.encoding, tuple(range(columns)))
    choice = Named(tuple(range(columns, columns + len(slices.sizes))), slices)
    encoding = StrataEncoding([source] * len(slices), strata, choice)
    return LdpProtocol(encoding, strata, SlicedDecoder(protocol, strata, slices.names), protocol)
