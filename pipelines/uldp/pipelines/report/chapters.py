"""What the page says about each version of a collection: facts, quantities over time, and windows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from uldp.mechanisms.pooling.versions import difference
from uldp.mechanisms.questions.periods import Every
from uldp.pipelines.report.cards import Card, cards_of
from uldp.pipelines.report.guarantee import guarantee
from uldp.pipelines.report.maps import Maps, maps_of
from uldp.pipelines.report.over_time import Lines, lines_of
from uldp.pipelines.report.points import points_of, pooled_points_of
from uldp.pipelines.report.received import received_of
from uldp.pipelines.report.shares import AllValues, Shares, all_values_of
from uldp.pipelines.results.newest import Current
from uldp.pipelines.results.pooled import Pooled
from uldp.pipelines.results.slices import of_slice, side_by_side, slices_of, without_slices
from uldp.pipelines.results.tables import headlines, of_attributes, slice_figures
from uldp.pipelines.results.text import accounting_text, clocks_text, shuffled_text, window_text
from uldp.pipelines.simulation.truth import KnownShares
from uldp.schemas.errors import RequestError
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.kinds import holds, is_listed
from uldp.schemas.specs.slices import slice_text
from uldp.schemas.table import TableName

#: How many slices the page shows with tables of their own, and how many it compares.
SHOWN_SLICES, COMPARED = 24, 400


@dataclass(frozen=True)
class Compared:
    """A quantity of each slice."""

    of: str  # the end of a phrase that names the attribute of a record; empty if the collection has one variable
    headings: Sequence[str]  # what the figures are: the values that most users hold, or a mean
    #: Of each slice, the most reports first, its name, its n and the figures.
    rows: Sequence[tuple[str, int, Sequence[str]]]
    size: int  # the number of slices that have tables


def compared(estimate: Estimate, spec: CollectionSpec) -> Iterator[Compared]:
    """Yield the shares of the values that most users hold, or the mean, of each slice."""
    for each in side_by_side(estimate):
        headings, figures = slice_figures(each, spec, COMPARED)
        unit = ", %" if each.total.name is TableName.SHARE else ""
        rows = [(slice_text(table.of), table.n, texts) for table, texts in zip(each.slices, figures, strict=False)]
        yield Compared(of_attributes(each.total.of), [f"{name}{unit}" for name in headings], rows, len(each.slices))


#: How many of the last windows of a version the page shows with tables of values, and how many it names.
SHOWN, NAMED = 24, 400
#: The maps of all windows of a version but the last one have so many squares, of some 100 bytes each.
MOST_SQUARES = 10_000


class Asked(NamedTuple):
    """What the reader asked for: see ``uldp.pipelines.report.page.report_page``."""

    truth: Mapping[tuple[str, int], KnownShares]
    values: Sequence[str]
    every: Every | None


@dataclass(frozen=True)
class Section:
    """One estimate as the page shows it; ``pooled`` says more about a pooled one. The last window has no maps here."""

    anchor: str
    estimate: Estimate
    window: str
    accounting: str
    clocks: Sequence[str]
    shuffled: str
    cards: Sequence[Card]
    pooled: Pooled | None = None
    maps: Sequence[Maps] = ()

    @property
    def shares(self) -> Sequence[Shares]:
        """The shares of its variables."""
        return [card.shares for card in self.cards if card.shares is not None]


@dataclass(frozen=True)
class Window:
    """One estimate in one line; ``section`` has its tables, unless the page leaves them out."""

    text: str
    estimate: Estimate
    pane: str
    largest: str
    section: Section | None


@dataclass(frozen=True)
class Chapter:
    """One version of one collection."""

    spec: CollectionSpec
    mechanism: str  # the mechanism in words
    guarantee: str  # the privacy guarantee in sentences
    truth: bool  # whether its true shares are known
    maps: Sequence[Maps]  # the maps of its last window
    windows: int  # the number of its windows
    reports: int  # the number of reports that they counted
    lines: Lines  # its quantities over time
    together: Lines | None  # those of all versions together, at the newest one; None of a collection with one version
    #: The estimates of its last windows with their tables, the last first, pooled ones before the others.
    sections: Sequence[Section]
    all_values: Sequence[AllValues]  # the tables of all values of its last window
    compared: Sequence[Compared]  # the slices of its last window side by side
    slices: Sequence[Section]  # the largest slices of its last window
    named: Sequence[Window]  # the estimates of its last windows, the last first
    unnamed: int  # the number of windows before those that are named

    @property
    def anchor(self) -> str:
        """The id of its heading."""
        return f"{self.spec.collection}-v{self.spec.version}"

    @property
    def last(self) -> Section:
        """The estimate of its last window, by the first of its estimators."""
        return next(each for each in self.sections if each.pooled is None)


def chapter_of(
    spec: CollectionSpec,
    estimates: Sequence[Estimate],
    pooled: Sequence[Pooled],
    together: Lines | None,
    found: Current,
    asked: Asked,
) -> Chapter:
    """Prepare a version of a collection, of estimates in order; RequestError if a truth or a period does not fit."""
    truth = asked.truth.get(spec.key)
    if truth is not None:
        _check_truth(truth, spec)
    of_slices, estimates = estimates, [without_slices(each) for each in estimates]
    windows = sorted({each.key for each in estimates})
    shown, named = set(windows[-SHOWN:]), set(windows[-NAMED:])
    of_first = of_first_estimator(estimates, spec)
    last = next(each for each in reversed(of_slices) if each.estimator == of_first[-1].estimator)
    sections = [
        *(_pooled_section(each, spec, truth) for each in pooled if each.estimate.key in shown),
        *(_section(each, spec, truth) for each in estimates if each.key in shown),
    ]
    sections.sort(key=lambda each: (each.estimate.window_end, each.estimate.window_start), reverse=True)
    received = received_of(found.statistic_of(of_first[-1]), spec)
    maps = maps_of(of_first[-1], spec, received, truth)
    if maps:
        sections = [*_with_maps(sections, of_first[-1], spec)]
    return Chapter(
        spec,
        mechanism=spec.mechanism.text,
        guarantee=guarantee(spec),
        truth=truth is not None,
        maps=maps,
        windows=len(windows),
        reports=sum({each.key: each.n for each in estimates}.values()),
        lines=lines_of(*points_of(of_first, spec, found, asked.every), spec, asked.values),
        together=together,
        sections=sections,
        all_values=all_values_of(of_first[-1], spec, received, truth),
        compared=list(compared(last, spec)),
        slices=[_slice_section(last, name, number, spec) for number, name in enumerate(slices_of(last)[:SHOWN_SLICES])],
        named=[
            *(_window(each.estimate, spec, each) for each in sections),
            *(_window(each, spec, None) for each in reversed(estimates) if each.key in named - shown),
        ],
        unnamed=max(len(windows) - NAMED, 0),
    )


def of_first_estimator(estimates: Sequence[Estimate], spec: CollectionSpec) -> Sequence[Estimate]:
    """Return the estimates by the first estimator of a spec; all, if none was selected by it."""
    return [each for each in estimates if each.estimator == spec.estimators[0]] or estimates


def together_of(
    versions: Sequence[tuple[CollectionSpec, Sequence[Estimate]]], found: Current, asked: Asked
) -> Lines | None:
    """Return lines of versions that can be pooled with the newest, the last, or None; RequestError as ``lines_of``."""
    newest, _ = versions[-1]
    alike = [
        (spec, of_first_estimator([without_slices(each) for each in estimates], spec))
        for spec, estimates in versions
        if not difference(spec, newest)
    ]
    if len(alike) < 2:
        return None
    points, every = pooled_points_of(alike, found, asked.every)
    return lines_of(points, every, newest, asked.values) if points else None


def _window(estimate: Estimate, spec: CollectionSpec, section: Section | None) -> Window:
    """Return the line of an estimate; a section has its tables."""
    return Window(
        window_text(estimate) if section is None else section.window,
        estimate,
        "" if section is not None and section.pooled else estimate.pane.kind.replace("_", " "),
        next(headlines(estimate, spec), ""),
        section,
    )


def _check_truth(truth: KnownShares, spec: CollectionSpec) -> None:
    if not is_listed(spec.domain.kind):
        raise RequestError(
            f"{spec.collection} collects {holds(spec.domain.kind)}, and a truth is for values; leave it out"
        )
    shares = truth.shares
    if not (shares.shape == (spec.size,) and (shares >= 0).all() and abs(shares.sum() - 1) < 1e-6):
        raise RequestError(
            f"the truth of {spec.collection} must be {spec.size} shares of 0 or more that sum to 1, "
            f"got shape {shares.shape} and sum {shares.sum():g}"
        )


def _with_maps(sections: Sequence[Section], last: Estimate, spec: CollectionSpec) -> Iterator[Section]:
    """Give maps to the newest of the sections whose estimate is not the last one, as many as there is room for."""
    room = MOST_SQUARES
    for section in sections:
        maps = maps_of(section.estimate, spec, {}, None) if room > 0 and section.estimate is not last else []
        room -= sum(each.squares for each in maps)
        yield section if room < 0 else replace(section, maps=maps)


def _section(estimate: Estimate, spec: CollectionSpec, truth: KnownShares | None) -> Section:
    return Section(
        anchor=f"{estimate.collection}-v{estimate.version}-{estimate.window_start}-{estimate.window_end}-{estimate.estimator}",
        estimate=estimate,
        window=window_text(estimate),
        accounting=accounting_text(estimate.accounting),
        clocks=[*clocks_text(estimate.signals)],
        shuffled=_shuffled(estimate),
        cards=cards_of(estimate, spec, truth),
    )


def _shuffled(estimate: Estimate) -> str:
    sentence, ends = shuffled_text(estimate)
    return f"{sentence[:1].upper()}{sentence[1:]}{': ' if ends else ''}{'; '.join(ends)}"


def _pooled_section(pooled: Pooled, spec: CollectionSpec, truth: KnownShares | None) -> Section:
    section = _section(pooled.estimate, spec, truth)
    return replace(section, window=f"{section.window}, {pooled.title}", shuffled="", pooled=pooled)


def _slice_section(estimate: Estimate, name: tuple[str, ...], number: int, spec: CollectionSpec) -> Section:
    section = _section(of_slice(estimate, name), spec, None)
    n = max(table.n for table in section.estimate.tables)
    return replace(
        section,
        anchor=f"{section.anchor}-slice-{number}",
        estimate=replace(section.estimate, accounting=Accounting(n, n), flags=()),
        window=", ".join(name),
        accounting="",
        clocks=(),
        shuffled="",
    )
