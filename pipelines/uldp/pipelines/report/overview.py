"""All collections of a page at a glance: the last window of each, its reports, and its flags."""

from collections.abc import Sequence
from dataclasses import dataclass

from uldp.pipelines.report.chapters import Chapter
from uldp.pipelines.report.time_line import Chart


@dataclass(frozen=True)
class Glance:
    """A version of a collection in one line; the chart is of the reports in each window."""

    anchor: str
    name: str
    windows: int
    reports: int
    last: str
    n: int
    chart: Chart
    flags: Sequence[str]


def glance_of(chapter: Chapter) -> Glance:
    """Return the line of a chapter."""
    last = chapter.last
    return Glance(
        chapter.anchor,
        f"{chapter.spec.collection} version {chapter.spec.version}",
        chapter.windows,
        chapter.reports,
        last.window,
        last.estimate.n,
        chapter.lines.reports,
        last.estimate.flags,
    )
