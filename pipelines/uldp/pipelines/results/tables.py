"""Tables of an estimate as lines of text: the largest shares, in percent; any other table entry by entry."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from uldp.pipelines.results.matrices import matrix_text
from uldp.pipelines.results.slices import VALUES, SideBySide, side_by_side, without_slices
from uldp.schemas.arrays import Floats, Mask
from uldp.schemas.estimate import Estimate
from uldp.schemas.labels import value_labels
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.kinds import Kind, ListedValues, Ranking
from uldp.schemas.specs.mistakes import printable
from uldp.schemas.specs.slices import attributes_of, slice_of, slice_text
from uldp.schemas.table import Basis, Table, TableName

#: The tables of shares: they belong together.
SHARES = (TableName.SHARE, TableName.HIDDEN, TableName.BOUND)
#: The tables that are shown with shares, or with their intervals.
WITH_SHARES = (*SHARES, TableName.VISIBLE, TableName.BAND, TableName.P_VALUE, TableName.FOUND)


def table_name(table: Table) -> str:
    """Return the quantity of a table and, of a record, the attributes: ``mean of hours``."""
    return f"{table.name}{of_attributes(table.of)}"


def of_attributes(of: Sequence[str]) -> str:
    """Return the attributes of a table as the end of a phrase; nothing if the collection has one variable."""
    about = " x ".join(attributes_of(of))
    return (f" of {about}" if about else "") + (f" in {slice_text(of)}" if slice_of(of) else "")


def headlines(estimate: Estimate, spec: CollectionSpec) -> Iterator[str]:
    """Yield the figures for one line: of each attribute, what is hidden behind tags, the largest share, or a number."""
    estimate = without_slices(estimate)
    for of in dict.fromkeys(table.of for table in estimate.tables):
        name = f"{' x '.join(of)} " if of else ""
        shares = estimate.table(TableName.HIDDEN, of) or estimate.table(TableName.SHARE, of)
        if shares is not None and not kind_of(of, spec).ordered:
            shown = range(len(shares.values)) if shares.name is TableName.HIDDEN else largest(shares.values, 1)
            labels = value_labels(shares, spec)
            for i in shown:
                figure = f"{100 * shares.values[i]:.2f}±{100 * shares.stderr[i]:.2f} %"
                yield printable(f"{name}{labels[i]} {figure}")
        elif (number := _number(estimate, of, spec)) is not None:
            table, i, label = number
            error = float(table.stderr[i])
            yield printable(f"{name}{label} {rounded(table.values[i], error)}±{rounded(error, error)}")


def _number(estimate: Estimate, of: tuple[str, ...], spec: CollectionSpec) -> tuple[Table, int, str] | None:
    """Return the number that stands for the others of an attribute, with its name: mean, median, or best score."""
    mean, quantile, score = (estimate.table(name, of) for name in (TableName.MEAN, TableName.QUANTILE, TableName.SCORE))
    if mean is not None:
        return mean, 0, mean.name
    if quantile is not None and "0.5" in (quantile.keys or ()):
        return quantile, (quantile.keys or ()).index("0.5"), "median"
    if score is not None:
        best = largest(score.values, 1)[0]
        return score, best, f"score of {value_labels(score, spec)[best]}"
    return None


def tables_text(estimate: Estimate, spec: CollectionSpec, *, top: int) -> Iterator[str]:
    """Yield the lines of all tables of an estimate, the ``top`` values most frequent first, bins in their order."""
    sliced, estimate = estimate, without_slices(estimate)
    variables = list(dict.fromkeys(table.of for table in estimate.tables))
    for of in variables:
        if not kind_of(of, spec).ordered:
            yield from _shares_text(estimate, of, spec, top)
    for table in estimate.tables:
        # A curve of up to 255 points is for the page and for programs.
        if table.name not in (*WITH_SHARES, TableName.ZONE, TableName.BELOW):
            yield from _table_text(table, spec, estimate)
    yield from (f"  {text}" for of in variables for text in withheld(estimate, of, spec))
    for of in variables:
        if kind_of(of, spec).ordered:
            yield from _shares_text(estimate, of, spec, top)
    for each in side_by_side(sliced):
        yield from _slices_text(each, spec, top)


def _slices_text(slices: SideBySide, spec: CollectionSpec, top: int) -> Iterator[str]:
    """Yield a line for each of the largest slices: its largest shares by those of all users, or its mean."""
    total, found = slices.total, slices.slices[:top]
    headings, figures = slice_figures(slices, spec, top)
    unit = " %" if total.name is TableName.SHARE else ""
    names = _aligned([printable(slice_text(table.of)) for table in found])
    yield f"  the {len(found)} largest of {len(slices.slices)} slices{of_attributes(total.of)}; uldp ask --by has more"
    for name, table, texts in zip(names, found, figures, strict=True):
        entries = (f"{printable(heading)} {text}{unit}" for heading, text in zip(headings, texts, strict=True))
        yield f"    {name}  n {table.n:,}  {'  '.join(entries)}"


def slice_figures(slices: SideBySide, spec: CollectionSpec, most: int) -> tuple[list[str], list[list[str]]]:
    """Return the values that most users hold, and their shares in percent in the largest slices; or the mean."""
    total, found = slices.total, slices.slices[:most]
    if total.name is not TableName.SHARE:
        return [total.name.value], [[entry_text(table, 0)] for table in found]
    order, labels = largest(total.values, VALUES), value_labels(total, spec)
    places = decimals(np.array([table.stderr[i] for table in found for i in order]))
    return [labels[i] for i in order], [[percent(table.values[i], places) for i in order] for table in found]


def shown(share: Table, spec: CollectionSpec, top: int) -> list[int]:
    """Return the indices of the ``top`` largest shares: values by their share, bins of a number in their order."""
    order = largest(share.values, top)
    return sorted(order) if kind_of(share.of, spec).ordered else order


def kind_of(of: Sequence[str], spec: CollectionSpec) -> Kind | type[Kind]:
    """Return the kind of values whose shares a table with these attributes has: of several, as listed values."""
    variable = spec.variable(of)
    return ListedValues if variable is None else variable.kind


def withheld(estimate: Estimate, of: tuple[str, ...], spec: CollectionSpec) -> Iterator[str]:
    """Yield why tables of these attributes lack entries, and how many; nothing if they lack none."""
    variable, found = spec.variable(of), estimate.table(TableName.FOUND, of)
    if variable is None or found is None or not variable.kind.withheld:
        return
    missing = int((found.values == 0).sum())
    if missing:
        yield f"{variable.kind.withheld}: {missing:,} of {len(found.values):,} {variable.kind.unit}"


# A band is shown first where background puts more of a share than this.
_CARRIED = 0.1


def carried(share: Table, visible: Table | None, band: Table | None) -> Mask:
    """Return of which values background puts more than a tenth of the share, so that the band is their interval."""
    if visible is None or band is None or band.low is None or share.basis is Basis.ANY_BACKGROUND:
        return np.zeros(len(share.values), dtype=np.bool_)
    return np.asarray(visible.values < (1 - _CARRIED) * share.values)


def _shares_text(estimate: Estimate, of: tuple[str, ...], spec: CollectionSpec, top: int) -> Iterator[str]:
    """Yield the lines of the shares of one variable, with one width and one number of decimals."""
    share, hidden, bound = (estimate.table(name, of) for name in SHARES)
    if share is None:
        return
    labels, order = value_labels(share, spec), shown(share, spec, top)
    visible, band = (estimate.table(name, of) for name in (TableName.VISIBLE, TableName.BAND))
    any_background = carried(share, visible, band)
    first = share if band is None else with_ends(share, band, any_background)
    entries, names = [(first, i) for i in order], [printable(labels[i]) for i in order]
    if hidden is not None:
        entries += [(hidden, i) for i in range(len(hidden.values))]
        names += value_labels(hidden, spec)
    zone = estimate.table(TableName.ZONE, of)
    if zone is not None:
        keys, zones = value_labels(zone, spec), largest(zone.values, top)
        entries += [(zone, i) for i in zones]
        names += [printable(keys[i]) for i in zones]
    places = decimals(np.array([table.stderr[i] for table, i in entries]))
    lines = [f"    {name}{row}" for name, row in zip(_aligned(names), _figures(entries, places), strict=True)]
    parts = _parts(estimate, of, order, places)
    about, n = of_attributes(of), "" if share.n == estimate.n else f", n {share.n:,}"
    errors = partial(_errors, estimate)
    entries_of = f"{len(order)} largest of {len(labels)} {kind_of(of, spec).unit}"
    yield f"  the {entries_of}{about}{n}, in {kind_of(of, spec).percent} {errors(share)}"
    if any_background[order].any():
        yield "  (where background puts more than a tenth of a share, with the interval of any background)"
    yield from (f"{line}{part}" for line, part in zip(lines, parts, strict=False))
    if hidden is not None:
        yield f"  behind tags{about}, in % {errors(hidden)}"
        yield from lines[len(order) :][: len(hidden.values)]
    if zone is not None:
        yield f"  the {len(zones)} largest of {len(keys)} zones behind tags{about}, in % {errors(zone)}"
        yield from lines[-len(zones) :]
    if bound is not None:
        yield f"    wrong background knowledge costs at most {bound.values[0]:.3g} in l1 (Theorem 1)"


def with_ends(share: Table, band: Table, of: Mask) -> Table:
    """Return a table of shares in which some values have the interval of another table."""
    if share.low is None or share.high is None or band.low is None or band.high is None:
        return share
    return replace(share, low=np.where(of, band.low, share.low), high=np.where(of, band.high, share.high))


def _figures(entries: Sequence[tuple[Table, int]], places: int) -> list[str]:
    """Write entries of tables of shares in percent, each with its interval; without intervals, with its error."""
    lows, highs = (
        _aligned(["" if end is None else percent(end[i], places) for end, i in ends])
        for ends in ([(table.low, i) for table, i in entries], [(table.high, i) for table, i in entries])
    )
    errors = [
        f"± {percent(table.stderr[i], places)}" if table.low is None else f"{low} to {high}{_forged(table, i, places)}"
        for (table, i), low, high in zip(entries, lows, highs, strict=True)
    ]
    return [
        f"  {percent(table.values[i], places):>{places + 4}}  {error}"
        for (table, i), error in zip(entries, errors, strict=True)
    ]


def _forged(table: Table, i: int, places: int) -> str:
    """Write the interval of a share that allows for forgers; nothing if the table has none."""
    if table.low_forged is None or table.high_forged is None:
        return ""
    return f" [{percent(table.low_forged[i], places)} to {percent(table.high_forged[i], places)}]"


def forgers_text(estimate: Estimate, table: Table) -> str:
    """Say what the intervals in brackets are; nothing if the table has none."""
    if table.low_forged is None or estimate.assume_forgers is None:
        return ""
    return f", and [those if up to {100 * estimate.assume_forgers:.3g} % of all reports are forged]"


def _parts(estimate: Estimate, of: tuple[str, ...], order: Sequence[int], places: int) -> list[str]:
    """Write of values what is visible and may be hidden; of candidates how probable they are if nobody holds them."""
    p_value, found = (estimate.table(name, of) for name in (TableName.P_VALUE, TableName.FOUND))
    if p_value is not None and found is not None:
        return [f"  {'found' if found.values[i] else '     '}  p {p_value.values[i]:.2g}" for i in order]
    visible, band = (estimate.table(name, of) for name in (TableName.VISIBLE, TableName.BAND))
    if visible is None or band is None or band.high is None:
        return [""] * len(order)
    share = estimate.table(TableName.SHARE, of)
    assert share is not None
    seen = _aligned([percent(visible.values[i], places) for i in order])
    most = _aligned([percent(band.high[i], places) for i in order])
    of_background = carried(share, visible, band)
    return [
        f"  {part} visible, {_by_background(share, i, places) if of_background[i] else f'up to {end} if hidden'}"
        for i, part, end in zip(order, seen, most, strict=True)
    ]


def _by_background(share: Table, i: int, places: int) -> str:
    """Write the interval of a share that relies on the background."""
    if share.low is None or share.high is None:
        return "the rest by the background"
    return f"{percent(share.low[i], places)} to {percent(share.high[i], places)} if the background holds"


def _errors(estimate: Estimate, table: Table) -> str:
    """Say how a table of shares shows its errors."""
    shown = "± standard error" if table.low is None else intervals_text(table)
    return f"{shown}{forgers_text(estimate, table)}"


def intervals_text(table: Table) -> str:
    """Describe the intervals of a table: ``with 95 % intervals``."""
    return f"with {100 * table.level:g} % intervals{' that hold at once' if table.simultaneous else ''}"


def _aligned(texts: Sequence[str]) -> list[str]:
    """Return texts of the same width, aligned to the right."""
    width = max(map(len, texts), default=0)
    return [f"{text:>{width}}" for text in texts]


def _table_text(table: Table, spec: CollectionSpec, estimate: Estimate) -> Iterator[str]:
    """Yield the lines of any other table: its name and n, and each entry with its error and its interval."""
    number = "" if table.n == estimate.n else f", n {table.n:,}"
    if table.name is TableName.BEATS:
        names = _candidates(table.of, spec)
        yield f"  % of users who rank the row above the column{number}, {_errors(estimate, table)}"
        yield from matrix_text(table, names, names, decimals(table.stderr))
        return
    if table.name is TableName.GIVEN:
        given, asked = attributes_of(table.of)
        rows, columns = (spec.variables[name].labels for name in (given, asked))
        yield f"  % of {asked} given {given}, which is that of the row{number}, {_errors(estimate, table)}"
        yield from matrix_text(table, rows, columns, decimals(table.stderr))
        return
    if table.name is TableName.INDEPENDENCE:
        yield "  p-values of attributes that have nothing to do with each other"
        labels = list(map(printable, value_labels(table, spec)))
        width = max(map(len, labels))
        yield from (f"    {label:<{width}}  {p:.2g}" for label, p in zip(labels, table.values.tolist(), strict=True))
        return
    if len(table.values) == 1 and table.keys is None:
        yield f"  {table_name(table)}{number}: {entry_text(table, 0)}{forgers_text(estimate, table)}"
        return
    yield f"  {table_name(table)}{number}, ± standard error{forgers_text(estimate, table)}"
    labels = list(map(printable, value_labels(table, spec)))
    width = max(map(len, labels))
    yield from (f"    {label:>{width}}  {entry_text(table, i)}" for i, label in enumerate(labels))


def _candidates(of: Sequence[str], spec: CollectionSpec) -> Sequence[str]:
    """Return the names of the candidates of a table about rankings."""
    variable = spec.variable(of)
    assert variable is not None
    return variable.of_kind(Ranking).of


def entry_text(table: Table, i: int) -> str:
    """Write an entry with its standard error and, if the table has intervals, its interval."""
    if table.name in (TableName.UNEXPLAINED, TableName.SIZE):
        return share_text(table, i)
    error = float(table.stderr[i])
    text = f"{rounded(table.values[i], error)} ± {rounded(error, error)}"
    if table.low is None or table.high is None:
        return text
    text = f"{text}, {100 * table.level:g} % interval {rounded(table.low[i], error)} to {rounded(table.high[i], error)}"
    if table.low_forged is None or table.high_forged is None:
        return text
    return f"{text} [{rounded(table.low_forged[i], error)} to {rounded(table.high_forged[i], error)}]"


def rounded(value: float, error: float) -> str:
    """Write a value in as many decimals as show two digits of its standard error; six digits without an error.

    >>> rounded(8.40171, 0.58), rounded(8401.71, 580.4)
    ('8.40', '8402')
    """
    if not (error > 0 and math.isfinite(error)):
        return f"{value:.6g}"
    return f"{value:z.{min(max(1 - math.floor(math.log10(error)), 0), 9)}f}"


def share_text(table: Table, i: int) -> str:
    """Write an entry of a table of shares in percent, with its standard error and its interval."""
    places = decimals(table.stderr)
    text = f"{percent(table.values[i], places)} ± {percent(table.stderr[i], places)} %"
    if table.low is None or table.high is None:
        return text
    ends = f"{percent(table.low[i], places)} to {percent(table.high[i], places)} %"
    return f"{text}, {100 * table.level:g} % interval {ends}{_forged(table, i, places)}"


def largest(distribution: Floats, top: int) -> list[int]:
    """Return the indices of the ``top`` largest values, the largest first; ties keep their order."""
    return [int(index) for index in np.argsort(-distribution, kind="stable")[:top]]


def decimals(stderr: Floats) -> int:
    """Return the number of decimals that shows two digits of the median standard error in percent."""
    positive = stderr[stderr > 0]
    if not positive.size:
        return 2
    below, above = (len(positive) - 1) // 2, len(positive) // 2
    # Not np.median, which takes a quarter of the time that the text of a small pane takes.
    ordered = np.partition(positive, (below, above))
    median = float(ordered[below] + ordered[above]) / 2
    return min(max(1 - math.floor(math.log10(100 * median)), 0), 9)


def percent(share: float, places: int) -> str:
    """Write a share in percent, without the sign of a negative zero."""
    return f"{100 * share:z.{places}f}"
