"""What windows of devices say of a population: each published number beside its truth, over many windows.

Devices encode and perturb what they hold, and mechanisms tally their reports, many windows at once. A statistic is a
table of ``Decoder.tables`` by its name, or a question that ``uldp ask`` answers from the counts: sums, ranges,
quantiles, and a comparison with another window in which nothing has changed, of as many reports or of a tenth.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from tests.mechanisms.populations import Population
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.mechanism import Mechanism, WithMemory
from uldp.mechanisms.questions import (
    Period,
    Row,
    Shares,
    Span,
    Version,
    compare,
    groups_of,
    quantiles,
    ranges,
    rows_of,
    shares_of,
    sums,
)
from uldp.schemas.arrays import Counts, Floats, Payloads
from uldp.schemas.flags import Flag
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.kinds import Range
from uldp.schemas.table import Table, TableName

#: The windows of a roll-up whose devices keep their responses.
KEPT = 3
#: The other window of a comparison of unequal numbers of reports has a tenth of the reports, and so many at least.
FEWER, LEAST = 10, 150
#: Reports that are in memory at once.
_AT_ONCE = 200_000
#: The numbers of an entry: its truth, what is published of it, and a p-value of something that is so.
FIELDS = ("truth", "values", "unbiased", "stderr", "low", "high", "p_value")
#: Flags of what is so in no population here: some sets are cut, and users of levels may differ.
_TRUE = (Flag.SETS_CUT, Flag.LEVELS_DIFFER)


@dataclass
class Gathered:
    """The numbers of one statistic over windows, by entry; NaN where a window does not have one.

    Attributes:
        windows: By name of ``FIELDS``, the numbers of the entries of each window.
        entries: The column of each entry.
    """

    windows: list[dict[str, Floats]] = field(default_factory=list)
    entries: dict[str, int] = field(default_factory=dict)
    _places: list[Sequence[int]] = field(default_factory=list)

    def add(self, entries: Sequence[str], **numbers: Floats | None) -> None:
        """Add entries of a window."""
        self._places.append([self.entries.setdefault(entry, len(self.entries)) for entry in entries])
        self.windows.append({name: each for name, each in numbers.items() if each is not None})

    def array(self, name: str) -> Floats:
        """Return one of ``FIELDS`` of all windows, shape (windows, entries)."""
        found = np.full((len(self.windows), len(self.entries)), np.nan)
        for row, places, numbers in zip(found, self._places, self.windows, strict=True):
            if name in numbers:
                row[places] = numbers[name]
        return found


class Gathering:
    """Gathers the numbers of windows of a population by the names of their statistics.

    Args:
        population: The population.
    """

    def __init__(self, population: Population) -> None:
        self.population, self.found = population, dict[str, Gathered]()
        self.version = Version(population.spec)

    def windows(self, n: int, windows: int, rng: Generator) -> dict[str, Gathered]:
        """Gather the numbers of so many windows of n devices each, and of roll-ups if devices keep responses."""
        decoder, few = self.population.protocol.decoder, max(n // FEWER, LEAST)
        estimator, before = decoder.estimators[0], list[Shares]()
        others = draw(self.population, few, (windows + 1) // 2, rng)
        for number, cells in enumerate(draw(self.population, n, windows, rng)):
            rows = _Rows(self.population)
            rows.tables(decoder.tables(cells, n, estimator))
            rows.flags({flag: p for flag, p in decoder.p_values(cells, n).items() if flag not in _TRUE})
            shares = _shares(self._span(cells, (n,)))
            rows.questions(shares)
            if number % 2:
                rows.changes(before, shares, "")
            elif few < n:
                rows.changes(shares, _shares(self._span(next(others), (few,))), ", unequal")
            rows.into(self.found)
            before = shares
        if self.population.protocol.mechanism.memory:
            self.roll_ups(n, windows // 2, rng)
        return self.found

    def changes(self, n: int, other: int, windows: int, rng: Generator) -> dict[str, Gathered]:
        """Compare so many windows of n devices with others of another number of devices."""
        for pair in zip(*(draw(self.population, size, windows, rng) for size in (n, other)), strict=True):
            before, after = (_shares(self._span(cells, (size,))) for cells, size in zip(pair, (n, other), strict=True))
            rows = _Rows(self.population)
            rows.changes(before, after, "")
            rows.into(self.found)
        return self.found

    def roll_ups(self, n: int, roll_ups: int, rng: Generator, windows: int = KEPT) -> dict[str, Gathered]:
        """Gather the numbers of so many sums of windows of the same n devices, which keep their responses."""
        for cells in _draw_kept(self.population, n, roll_ups, windows, rng):
            rows, span = _Rows(self.population, "roll-up: "), self._span(cells, (n,) * windows)
            rows.tables(span.tables(self.population.protocol.decoder.estimators[0]))
            rows.questions(_shares(span))
            rows.into(self.found)
        return self.found

    def _span(self, cells: Counts, sizes: tuple[int, ...]) -> Span:
        """Return the sum of windows, from its cells."""
        n = sum(sizes)
        apart = (0,) * len(self.version.decoder.reports(cells, n))
        return Span(self.version, Period(0, 3_600_000, "window"), cells, sizes, apart, Accounting(n, n), ())


class _Rows:
    """The numbers of one window."""

    def __init__(self, population: Population, prefix: str = "") -> None:
        self._population, self._prefix = population, prefix
        self._found = dict[str, list[tuple[Sequence[str], dict[str, Floats | None]]]]()

    def into(self, found: dict[str, Gathered]) -> None:
        """Add the window to those that have been gathered."""
        for name, parts in self._found.items():
            gathered = found.setdefault(self._prefix + name, Gathered())
            entries = [entry for part, _ in parts for entry in part]
            columns: dict[str, Floats | None] = {}
            for column in FIELDS:
                arrays = [numbers.get(column) for _, numbers in parts]
                if any(array is not None for array in arrays):
                    columns[column] = np.concatenate(
                        [
                            np.full(len(part), np.nan) if array is None else array
                            for array, (part, _) in zip(arrays, parts, strict=True)
                        ]
                    )
            gathered.add(entries, **columns)

    def _add(self, name: str, entries: Sequence[str], **numbers: Floats | None) -> None:
        self._found.setdefault(name, []).append((entries, numbers))

    def tables(self, tables: Sequence[Table]) -> None:
        """Add what tables publish."""
        for table in tables:
            of, keys = " x ".join(table.of), table.keys or [str(at) for at in range(len(table.values))]
            entries = [f"{of} {key}" for key in keys]
            if table.name in (TableName.P_VALUE, TableName.FOUND):
                nobody = self._nobody(table)
                if table.name is TableName.P_VALUE:
                    self._add("p_value", entries, p_value=np.where(nobody, table.values, np.nan))
                else:
                    any_found = (table.values[nobody] > 0).any()
                    self._add("found", [of], p_value=np.array([0.0 if any_found else 1.0]))
            elif table.name is TableName.INDEPENDENCE:
                self._add("independence", entries, p_value=table.values)
            elif (truth := self._population.truth(table)) is not None:
                name = "means of keys" if table.name is TableName.MEAN and table.keys else table.name.value
                # Where users behind a tag are is an assumption, and adds to the errors of such shares.
                assumed = table.name is TableName.SHARE and self._tagged(table.of)
                unbiased = None if assumed else table.unbiased
                self._add(
                    name,
                    entries,
                    truth=truth,
                    values=table.values,
                    unbiased=unbiased,
                    stderr=table.stderr,
                    low=table.low,
                    high=table.high,
                )

    def _tagged(self, of: Sequence[str]) -> bool:
        variables = self._population.spec.variables
        return any(variables[each].tags for each in variables if not each or each in of)

    def _nobody(self, table: Table) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Return which keys of a table of p-values are held by nobody."""
        attribute = next((each for each in table.of if each in self._population.spec.variables), "")
        variable, shares = self._population.spec.variables[attribute], self._population.shares(attribute)
        held = dict(zip(variable.candidates or variable.labels, shares, strict=True))
        keys = table.keys or variable.labels
        return np.array([held.get(key, 0.0) == 0 for key in keys])

    def flags(self, p_values: dict[Flag, float]) -> None:
        """Add the p-values of flags."""
        for flag, p_value in p_values.items():
            self._add("flags", [flag.value], p_value=np.array([p_value]))

    def questions(self, of: Sequence[Shares]) -> None:
        """Ask for sums of every second value and of the rarest two, and for ranges and quantiles of bins."""
        estimator = self._population.protocol.decoder.estimators[0]
        for shares in of:
            if shares.pum is not None and shares.labels:
                truth = self._population.shares(shares.attribute)
                groups = {"every second": list(range(1, len(truth), 2)), "rare": np.argsort(truth)[:2].tolist()}
                total = np.array([truth[at].sum() for at in groups.values()])
                known = not shares.pum.tags
                self._answers("sums", list(rows_of(sums(shares, groups_of(shares, groups)))), total, known=known)
            bins = getattr(shares.decoder, "number_of_bins", None)
            if bins is not None:
                self._of_bins(shares, bins, estimator)

    def _of_bins(self, shares: Shares, bins: int, estimator: str) -> None:
        kind = shares.span.version.spec.variables[shares.attribute].kind
        last = 1 if kind.listed else 0
        pairs = [(bins // 8, bins // 2), (bins // 2, bins - 1)]
        wanted = [
            Range(first, end, f"{kind.bin_text(first, bins)} to {kind.bin_text(end - last, bins)}")
            for first, end in pairs
        ]
        questions = ranges(shares, wanted, estimator), quantiles(shares, [0.3, 0.9], estimator)
        asked = [list(rows_of(each)) for each in questions]
        for name, answers in zip((TableName.RANGE, TableName.QUANTILE), asked, strict=True):
            nothing, keys = np.zeros(len(answers)), tuple(answer.label or "" for answer in answers)
            truth = self._population.truth(Table(name, nothing, nothing, 1, keys=keys, of=(shares.attribute,)))
            assert truth is not None
            self._answers(f"{name.value}s asked for", answers, truth)

    def changes(self, before: Sequence[Shares], after: Sequence[Shares], suffix: str) -> None:
        """Compare with a window of the same population."""
        others = {shares.attribute: shares for shares in after}
        for one in before:
            if one.attribute not in others:
                continue
            answers = list(rows_of(compare(one, others[one.attribute])))
            whole = [each for each in answers if each.quantity == "whole"]
            single = [each for each in answers if each.quantity != "whole"]
            self._answers(f"compare{suffix}", single, np.zeros(len(single)))
            if whole:
                p_value = np.array([float(each.p_value or 0) for each in whole])
                self._add(f"compare, whole{suffix}", [one.attribute], p_value=p_value)

    def _answers(self, name: str, answers: Sequence[Row], truth: Floats, *, known: bool = True) -> None:
        """Add answers; ``known`` says whether it is known what is behind tags."""
        entries = [f"{each.attribute} {each.quantity} {each.label}" for each in answers]
        columns = {
            column: np.array([np.nan if (of := getattr(each, at)) is None else of for each in answers], dtype=float)
            for column, at in (("values", "estimate"), *((same, same) for same in FIELDS[2:]))
            if known or column != "unbiased"
        }
        self._add(name, entries, truth=truth, **columns)


def _shares(span: Span) -> list[Shares]:
    """Return the shares of the variables of a span; [] if a level or a length of its mechanism has no report."""
    try:
        return list(shares_of(span))
    except ValueError:
        return []


def draw(population: Population, n: int, windows: int, rng: Generator) -> Iterator[Counts]:
    """Yield the cells of windows of n devices each."""
    mechanism = population.protocol.mechanism
    for many in _portions(n, windows):
        yield from _tally(mechanism, mechanism.perturb(population.symbols(rng, n * many), rng), n, many)


def _draw_kept(population: Population, n: int, sums: int, windows: int, rng: Generator) -> Iterator[Counts]:
    """Yield the summed cells of windows of the same n devices."""
    mechanism = population.protocol.mechanism
    assert isinstance(mechanism, WithMemory)
    for many in _portions(n, sums):
        permanent = mechanism.permanent(population.symbols(rng, n * many), rng)
        total = [_tally(mechanism, mechanism.again(permanent.copy(), rng), n, many) for _ in range(windows)]
        yield from (np.sum(each, axis=0) for each in zip(*total, strict=True))


def _portions(n: int, windows: int) -> Iterator[int]:
    at_once = max(_AT_ONCE // n, 1)
    yield from (min(at_once, windows - first) for first in range(0, windows, at_once))


def _tally(mechanism: Mechanism, payloads: Payloads, n: int, windows: int) -> list[Counts]:
    return [as_dense(cells) for cells in mechanism.tally([payloads], np.arange(windows).repeat(n), windows)]


def of_each_report(population: Population, reports: int, rng: Generator) -> Floats:
    """Return the unbiased estimate from each of so many reports alone, shape (reports, m).

    Raises:
        ValueError: if one report alone gives no estimate, because the mechanism has parts.
    """
    protocol = population.protocol
    payloads = protocol.mechanism.perturb(population.symbols(rng, reports), rng)
    cells = [as_dense(each) for each in protocol.mechanism.tally([payloads], np.arange(reports), reports)]
    kinds, which = np.unique(np.array(cells, dtype=np.int32), axis=0, return_inverse=True)
    return np.array([protocol.decoder.linear(kind.astype(np.int64), 1).values for kind in kinds])[which.ravel()]
