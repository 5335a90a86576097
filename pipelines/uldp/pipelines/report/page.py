"""The report: a results directory as one self-contained HTML page, for readers who must judge the estimates."""

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path

from uldp.collector.estimating import tables_of
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.questions.periods import Every
from uldp.pipelines.aside import written_aside
from uldp.pipelines.report.chapters import NAMED, SHOWN, Asked, chapter_of, together_of
from uldp.pipelines.report.colours import DARK, LIGHT
from uldp.pipelines.report.maps import STEPS
from uldp.pipelines.report.over_time import Lines, check_chosen
from uldp.pipelines.report.time_line import HEIGHT, WIDTH
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import waiting
from uldp.pipelines.results.pooled import Pooled, pool_versions
from uldp.pipelines.results.prune import lost_files
from uldp.pipelines.results.selection import ALL, Selection
from uldp.pipelines.results.tables import percent
from uldp.pipelines.results.text import minute_text, number_of, window_text
from uldp.pipelines.simulation.truth import KnownShares
from uldp.schemas import flags
from uldp.schemas.errors import RequestError
from uldp.schemas.estimate import Estimate
from uldp.schemas.extras import needed
from uldp.schemas.reasons import MEANING
from uldp.schemas.records import missing_messages
from uldp.schemas.rejected import count_reasons
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.specs.durations import format_duration
from uldp.schemas.specs.mistakes import printable
from uldp.schemas.statistic import Statistic


def write_page(page: str, target: Path) -> None:
    """Write a page to a file, in one step; OSError if the operating system refuses it."""
    with written_aside(target) as path:
        path.write_text(page, encoding="utf-8")


def report_page(
    results: ResultsFolder,
    selection: Selection = ALL,
    *,
    made: int,
    truth: Mapping[tuple[str, int], KnownShares] | None = None,
    values: Sequence[str] = (),
    every: Every | None = None,
    simultaneous: bool = False,
    state: str | None = None,
    narrowed: str = "",
) -> str:
    """Return the newest pane of the selected windows of results as one HTML page. The same input gives the same bytes.

    All windows are in the lines over time. The last ``NAMED`` of each version of a collection have a line in a table,
    and the last ``SHOWN`` of these have tables of values. ``made`` is a time in milliseconds that the page names.
    ``values`` have lines too; ``every`` is a period of points; ``simultaneous`` computes tables anew, with intervals
    that hold at once; with ``state``, the page follows the results; ``narrowed`` says which windows are not
    selected.

    ResultsError without results, SpecError for an invalid spec, RequestError if a library is missing, or a truth, a
    value, a period or counts do not fit.
    """
    with needed("a report", "report"):
        import jinja2
        import matplotlib  # noqa: F401 (report a missing package before the results are read)
    unread = 0

    def leave_out(error: ResultsError) -> None:
        nonlocal unread
        results.damaged(error)
        unread += 1

    folder = replace(results, damaged=leave_out)
    specs, found = folder.specs, folder.current(selection)
    estimates = list(folder.with_specs(found.estimates))
    by_spec: dict[tuple[str, int], list[Estimate]] = {}
    for estimate, spec in estimates:
        shown = _at_once(estimate, found.statistic_of(estimate), spec) if simultaneous else estimate
        by_spec.setdefault(spec.key, []).append(shown)
    not_pooled: list[str] = []
    pooled: dict[tuple[str, int], list[Pooled]] = {}
    last = replace(selection, last=SHOWN).windows({estimate.key for estimate, _ in estimates})
    to_pool = [
        (each, spec.with_intervals("simultaneous") if simultaneous else spec)
        for each, spec in estimates
        if each.key in last
    ]
    for each in pool_versions(to_pool, found, not_pooled.append):
        pooled.setdefault(each.spec.key, []).append(each)
    check_chosen(values, [(mine[-1], specs[key]) for key, mine in by_spec.items()])
    asked = Asked(truth or {}, values, every)
    together: dict[CollectionKey, Lines | None] = {}
    for _, keys in groupby(sorted(by_spec), key=itemgetter(0)):
        versions = list(keys)
        try:
            together[versions[-1]] = together_of([(specs[key], by_spec[key]) for key in versions], found, asked)
        except RequestError as error:
            not_pooled.append(f"No lines are of all versions together: {error}")
    names, newest_first = {name for name, _ in by_spec}, sorted(by_spec, key=lambda key: (key[0], -key[1]))
    chapters = [
        chapter_of(specs[key], by_spec[key], pooled.get(key, ()), together.get(key), found, asked)
        for key in newest_first
    ]
    scripts = ["page.js"] if state is None else ["page.js", "live.js"]
    script = "\n".join(
        resources.files("uldp.pipelines.report").joinpath(name).read_text(encoding="utf-8") for name in scripts
    )
    rejected, missing = _rejections(folder), _missing(folder)
    left_out = folder.left_out()
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("uldp.pipelines.report"),
        autoescape=True,  # labels, flags and file names are data
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["duration"] = format_duration
    environment.filters["window"] = window_text
    environment.filters["percent"] = lambda share, places: percent(share, places).replace("-", "−")
    environment.filters["minus"] = lambda text: text.replace("-", "−")
    return environment.get_template("report.html.j2").render(
        title=names.pop() if len(names) == 1 else folder.path.resolve().name,
        made=minute_text(made // 60_000 * 60_000),
        script=script,
        state=state,
        digest=b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        chart={"width": WIDTH, "height": HEIGHT},
        light=LIGHT,
        dark=DARK,
        steps=STEPS,
        most={"named": NAMED, "shown": SHOWN},
        chapters=chapters,
        hatched=any(
            shares.rows[0].visible is not None
            for chapter in chapters
            for section in chapter.sections
            for shares in section.shares
        ),
        not_pooled=not_pooled,
        unpublished=found.unpublished,
        waiting=list(waiting(found, specs)),
        flag_meanings=flags.MEANING,
        rejected=rejected,
        left_out=left_out,
        narrowed=narrowed,
        missing=missing,
        unread=number_of(unread, "file") if unread else "",
    )


def _at_once(estimate: Estimate, statistic: Statistic | None, spec: CollectionSpec) -> Estimate:
    """Return an estimate with tables as by ``intervals: simultaneous``; RequestError if its statistic is missing."""
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


def _missing(folder: ResultsFolder) -> list[tuple[str, int]]:
    """Return the number of missing messages of each part of the source."""
    records = sorted(folder.missing(), key=attrgetter("source"))
    return [(source, missing_messages(of_source)) for source, of_source in groupby(records, attrgetter("source"))]


def _rejections(folder: ResultsFolder) -> list[tuple[str, int, str]]:
    """Return reason, count and meaning of the rejections, the most frequent first."""
    counts = count_reasons(folder.rejected())
    for lost in lost_files(folder.path, folder.path / "rejected"):
        folder.damaged(lost)
    meaning: Mapping[str, str] = {reason.value: text for reason, text in MEANING.items()}
    return [(reason, n, meaning.get(reason, "")) for reason, n in sorted(counts.items(), key=lambda x: (-x[1], x[0]))]
