"""The report: a results directory as one self-contained HTML page, for readers who must judge the estimates."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from uldp.collector.tables import tables_of
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.mechanism import Privacy
from uldp.pipelines.aside import written_aside
from uldp.pipelines.report.shares import TOP, Shares, shares_of
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.pooled import Pooled, pool_versions
from uldp.pipelines.results.prune import pruned_before
from uldp.pipelines.results.signed import Signed
from uldp.pipelines.results.tables import (
    WITH_SHARES,
    entry_text,
    forgers_text,
    largest,
    percent,
    share_text,
    table_name,
)
from uldp.pipelines.results.text import accounting_text, number_of, shuffled_text, window_text
from uldp.pipelines.simulation.truth import KnownShares
from uldp.schemas import flags
from uldp.schemas.errors import RequestError
from uldp.schemas.estimate import Estimate
from uldp.schemas.labels import value_labels
from uldp.schemas.reasons import MEANING
from uldp.schemas.records import missing_messages
from uldp.schemas.rejected import count_reasons
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import format_duration
from uldp.schemas.specs.kinds import holds, is_listed
from uldp.schemas.specs.mistakes import printable
from uldp.schemas.statistic import Statistic
from uldp.schemas.table import Table, TableName


@dataclass(frozen=True)
class Other:
    """A table that is not about values: its name, n, size, and label and text of its first or largest entries."""

    name: str
    n: int
    size: int
    which: str
    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Section:
    """One estimate as the page shows it; ``pooled`` says more about a pooled one."""

    anchor: str
    estimate: Estimate
    window: str
    accounting: str
    shuffled: str
    shares: Sequence[Shares]
    others: Sequence[Other]
    pooled: Pooled | None = None


@dataclass(frozen=True)
class Chapter:
    """One version of one collection: its spec, its privacy guarantee, and its estimates, pooled ones at the end."""

    spec: CollectionSpec
    mechanism: str
    guarantee: str
    truth: bool
    sections: Sequence[Section]


def write_report(
    results: ResultsFolder,
    target: Path,
    *,
    truth: Mapping[tuple[str, int], KnownShares] | None = None,
    grid: tuple[int, int] | None = None,
    simultaneous: bool = False,
) -> None:
    """Write the newest pane of every window of results as one HTML page. The same input gives the same bytes.

    Args:
        results: The results directory. The page shows the number of damaged files, and all other windows.
        target: The file to write.
        truth: By (collection, version), the true shares, if a simulation knows them.
        grid: Rows and columns, for collections with |X| values that are the cells of a map: value i is in row
            i // columns, with row 0 at the bottom.
        simultaneous: Whether to compute the tables of values again from their counts, with intervals that hold at once.

    Raises:
        OSError: if the operating system refuses to write the file.
        ResultsError: if the directory holds no results.
        SpecError: if a spec in it is invalid.
        RequestError: if jinja2 or matplotlib is missing, a truth is not a distribution over its X, no collection has
            rows x columns values, or counts that ``simultaneous`` needs are missing.
    """
    try:
        import jinja2
        import matplotlib  # noqa: F401 (report a missing package before the results are read)
    except ImportError as error:
        raise RequestError(f"a report needs {error.name}; install it: pip install 'uldp-stream[report]'") from error
    unread = 0

    def leave_out(error: ResultsError) -> None:
        nonlocal unread
        results.damaged(error)
        unread += 1

    folder = replace(results, damaged=leave_out)
    specs, found = folder.specs, folder.current()
    estimates = list(folder.with_specs(found.estimates))
    by_spec: dict[tuple[str, int], list[Estimate]] = {}
    for estimate, spec in estimates:
        shown = _at_once(estimate, found.statistic_of(estimate), spec) if simultaneous else estimate
        by_spec.setdefault(spec.key, []).append(shown)
    not_pooled: list[str] = []
    pooled: dict[tuple[str, int], list[Pooled]] = {}
    to_pool = [(each, spec.with_intervals("simultaneous") if simultaneous else spec) for each, spec in estimates]
    for each in pool_versions(to_pool, found, not_pooled.append):
        pooled.setdefault(each.spec.key, []).append(each)
    sizes_by_spec = {key: [each.size for each in specs[key].variables.values()] for key in by_spec}
    if grid is not None and by_spec and not any(math.prod(grid) in sizes for sizes in sizes_by_spec.values()):
        sizes = ", ".join(
            f"{size} ({collection})" for (collection, _), found in sizes_by_spec.items() for size in found
        )
        raise RequestError(
            f"a grid of {grid[0]} x {grid[1]} has {math.prod(grid)} cells, but |X| is {sizes}; correct the grid"
        )
    chapters = [
        _chapter(specs[key], mine, pooled.get(key, ()), (truth or {}).get(key), grid) for key, mine in by_spec.items()
    ]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("uldp.pipelines.report"),
        autoescape=True,  # labels, flags and file names are data
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    rejected, missing = _rejections(folder), _missing(folder)
    left_out = folder.left_out()
    environment.filters["duration"] = format_duration
    environment.filters["window"] = window_text
    environment.filters["percent"] = lambda share, places: percent(share, places).replace("-", "−")
    page = environment.get_template("report.html.j2").render(
        name=folder.path.resolve().name,
        chapters=chapters,
        hatched=any(
            shares.rows[0].visible is not None
            for chapter in chapters
            for section in chapter.sections
            for shares in section.shares
        ),
        not_pooled=not_pooled,
        unpublished=found.unpublished,
        flag_meanings=flags.MEANING,
        rejected=rejected,
        left_out=left_out,
        missing=missing,
        unread=number_of(unread, "file") if unread else "",
    )
    with written_aside(target) as path:
        path.write_text(page, encoding="utf-8")


def _at_once(estimate: Estimate, statistic: Statistic | None, spec: CollectionSpec) -> Estimate:
    """Return an estimate with the tables that its job would have made with ``intervals: simultaneous``.

    Raises:
        RequestError: if its statistic is missing.
    """
    if statistic is None:
        raise RequestError(
            f"{estimate.collection} v{estimate.version}, {window_text(estimate)}: the counts are missing, from which "
            "intervals that hold at once follow; copy the folder counts beside estimates, or leave out --simultaneous"
        )
    decoder = build_protocol(spec.with_intervals("simultaneous")).decoder
    return replace(estimate, tables=tables_of(decoder, spec, statistic, estimate.estimator))


def _shown(value: object) -> object:
    """Replace the characters of a text that reorder or hide what a reader sees; HTML needs no escape for them."""
    return printable(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _chapter(
    spec: CollectionSpec,
    estimates: Sequence[Estimate],
    pooled: Sequence[Pooled],
    truth: KnownShares | None,
    grid: tuple[int, int] | None,
) -> Chapter:
    if truth is not None:
        _check_truth(truth, spec)
    return Chapter(
        spec,
        mechanism=spec.mechanism.text,
        guarantee=guarantee(spec),
        truth=truth is not None,
        sections=[
            *(_section(estimate, spec, truth, grid) for estimate in estimates),
            *(_pooled_section(each, spec, truth, grid) for each in pooled),
        ],
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


def guarantee(spec: CollectionSpec) -> str:
    """Return sentences about the privacy of one report, and of all reports of a user.

    Source: Murakami & Kawamoto (USENIX Security 2019), Definitions 1 and 2, and Proposition 11 for tags.
    """
    promise = build_protocol(spec).mechanism.guarantee
    if promise.epsilon is None:
        return "Nobody is protected: every report is the true value."
    one = _guarantee_of_one_report(spec, promise.privacy, f"exp(ε) = {_factor(promise.epsilon)}") + _within_tags(spec)
    if promise.terms:
        one += f" This is the most that any two values differ by: {promise.terms}."
    if promise.lasting is not None:
        one += " This is about one report; for two or more reports of one value together, the factor is "
        one += f"{_factor(promise.lasting)}. Values of one user add up."
    if spec.budget is not None:
        one += (
            f" A device refuses reports with which its user would spend more than {spec.budget}, over all collections."
        )
    if promise.lasting is None and spec.budget is None:
        one += " Reports of one user add up: t reports spend t·ε."
    return one


def _factor(epsilon: float) -> str:
    odds = math.exp(epsilon)
    return f"{odds:,.0f}" if 100 <= odds < 1e6 else f"{odds:.3g}"


#: What the definitions are called that bound the odds of every two values.
_DEFINITIONS = {
    Privacy.LDP: "ε-LDP",
    Privacy.ID_LDP: "input-discriminative LDP, MinID-LDP",
    Privacy.METRIC: "d-privacy, which does not protect far values from each other",
}


def _guarantee_of_one_report(spec: CollectionSpec, privacy: Privacy, factor: str) -> str:
    if privacy is not Privacy.ULDP:
        return (
            f"Whatever value a user holds, what the device sends is at most {factor} times as likely as it would be "
            f"under any other value, for everyone who sees it, the collector included ({_DEFINITIONS[privacy]})."
        )
    hidden, also = "", ""
    if any(variable.tags for variable in spec.variables.values()):
        hidden = ", or is one that the device hides behind a tag and tells nobody about,"
        also = ", and with it that the user does not hide this value"
    return (
        f"A user whose value is sensitive{hidden} sends only protected reports, each at most {factor} times as likely "
        "as it would be under any other value, for everyone who sees it, the collector included (ULDP); "
        f"a user at any other value may send a report that reveals it{also}."
    )


def _within_tags(spec: CollectionSpec) -> str:
    """Return what a report tells about a value behind a tag; nothing if no tag has zones."""
    tags = [tag for variable in spec.variables.values() for tag in variable.tags]
    loud = [tag.name for tag in tags if tag.zones is not None and tag.zone_epsilon is None]
    quiet = [f"{_factor(tag.zone_epsilon)} for {tag.name}" for tag in tags if tag.zone_epsilon is not None]
    said = ""
    if quiet:
        said += f" Between two values behind one tag, it is at most {', '.join(quiet)}."
    if loud:
        said += f" A report may name the zone of a value behind {', '.join(loud)}: between zones, it is up to exp(ε)."
    return said


def _section(
    estimate: Estimate, spec: CollectionSpec, truth: KnownShares | None, grid: tuple[int, int] | None
) -> Section:
    return Section(
        anchor=f"{estimate.collection}-v{estimate.version}-{estimate.window_start}-{estimate.window_end}-{estimate.estimator}",
        estimate=estimate,
        window=window_text(estimate),
        accounting=accounting_text(estimate.accounting),
        shuffled=_shuffled(estimate),
        shares=[
            shares_of(estimate, table, spec, truth, grid) for table in estimate.tables if table.name is TableName.SHARE
        ],
        others=[_other(estimate, table, spec) for table in estimate.tables if table.name not in WITH_SHARES],
    )


def _shuffled(estimate: Estimate) -> str:
    sentence, ends = shuffled_text(estimate)
    return f"{sentence[:1].upper()}{sentence[1:]}{': ' if ends else ''}{'; '.join(ends)}"


def _pooled_section(
    pooled: Pooled, spec: CollectionSpec, truth: KnownShares | None, grid: tuple[int, int] | None
) -> Section:
    section = _section(pooled.estimate, spec, truth, grid)
    return replace(section, window=f"{section.window}, {pooled.title}", shuffled="", pooled=pooled)


def _other(estimate: Estimate, table: Table, spec: CollectionSpec) -> Other:
    name = f"{table_name(table)}, ± standard error{forgers_text(estimate, table)}"
    labels = value_labels(table, spec)
    if table.name is TableName.ZONE:
        rows = [(labels[i], share_text(table, i)) for i in largest(table.values, TOP)]
        return Other(name, table.n, len(table.values), "largest", rows)
    rows = [(label, entry_text(table, i)) for i, label in enumerate(labels[:TOP])]
    return Other(name, table.n, len(table.values), "first", rows)


def _missing(folder: ResultsFolder) -> list[tuple[str, int]]:
    """Return the number of missing messages of each part of the source."""
    records = sorted(folder.missing(), key=attrgetter("source"))
    return [(source, missing_messages(of_source)) for source, of_source in groupby(records, attrgetter("source"))]


def _rejections(folder: ResultsFolder) -> list[tuple[str, int, str]]:
    """Return reason, count and meaning of the rejections, the most frequent first."""
    counts = count_reasons(folder.rejected())
    for lost in Signed.read(folder.path).lost_files(folder.path / "rejected", pruned_before(folder.path)):
        folder.damaged(lost)
    meaning: Mapping[str, str] = {reason.value: text for reason, text in MEANING.items()}
    return [(reason, n, meaning.get(reason, "")) for reason, n in sorted(counts.items(), key=lambda x: (-x[1], x[0]))]
