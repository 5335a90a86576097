"""Compare the windows of a recount with the newest panes of a job, and these with the places of rows."""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from uldp.pipelines.audit.found import is_open
from uldp.pipelines.audit.recount import WindowKey
from uldp.pipelines.results.files import Damaged
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.lacking import Lacking
from uldp.pipelines.results.selection import window_name
from uldp.pipelines.results.text import accounting_text, number_of
from uldp.schemas.errors import EndpointError
from uldp.schemas.pane import Accounting, PaneHeader
from uldp.transforms.io.endpoints import Endpoint, parse_endpoint
from uldp.transforms.io.folders import JOB
from uldp.transforms.io.local.journal import Extent
from uldp.transforms.io.row_sink import RowSink

#: Where a report is: in a window, or among the records of a kind.
Place = WindowKey | str


@dataclass(frozen=True)
class Lost:
    """Parts of a source that are not in the results, from ``first`` to ``last``, and their reports by place."""

    first: str
    last: str
    parts: int
    places: Mapping[Place, int]

    def __str__(self) -> str:
        windows = [place for place in self.places if not isinstance(place, str)]
        n = sum(self.places[window] for window in windows) or sum(self.places.values())
        where = f" ({window_name(min(windows))})" if windows else ""
        if len(windows) > 1:
            where = f"{where[:-1]} and {len(windows) - 1:,} more)"
        those = f"{self.first} to {self.last}, {self.parts:,} in all: their" if self.parts > 1 else f"{self.first}: its"
        return f"{those} {number_of(n, 'report')} are in no pane{where}; run the job again"


@dataclass
class Compared:
    """The windows of which source and panes say something else."""

    lacking: dict[WindowKey, int] = field(default_factory=dict)  # how many reports of a window are in no pane
    extra: dict[WindowKey, int] = field(default_factory=dict)  # how many reports of a pane are not in the source
    #: How many reports of a window are late in its pane, and not by their publish times in the source.
    later: dict[WindowKey, int] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)  # lines about windows with as many reports, but not the same
    open: set[WindowKey] = field(default_factory=set)  # the windows that have not fired yet


def compare(
    expected: Mapping[WindowKey, Accounting],
    panes: Mapping[WindowKey, PaneHeader],
    *,
    unsure: Container[WindowKey] = (),
    fired_until: float,
    by_watermark: bool = False,
) -> Compared:
    """Compare each window's newest pane with the source, which counts copies, and may be ``unsure`` of some.

    Windows that end by ``fired_until``, in milliseconds, have fired. ``by_watermark``: messages behind a broker's
    watermark are late.
    """
    compared = Compared()
    for key in sorted(expected.keys() | panes.keys()):
        pane, wanted = panes.get(key), expected.get(key, Accounting())
        there = Accounting() if pane is None else replace(pane.accounting, missing=0)
        if not there.closes():
            compared.others.append(f"{window_name(key)}: {accounting_text(there)}")
        elif is_open(pane) and key[3] > fired_until:
            compared.open.add(key)
        elif key in unsure:
            continue
        elif wanted.received != there.received:
            more = there.received - wanted.received
            (compared.extra if more > 0 else compared.lacking)[key] = abs(more)
        elif by_watermark and wanted.late < there.late and wanted.rejected == there.rejected:
            compared.later[key] = there.late - wanted.late
        elif (wanted.counted, wanted.late, wanted.rejected) != _outcomes(there):
            compared.others.append(
                f"{window_name(key)}: the newest pane has {there.late:,} late and {there.rejected:,} rejected reports,"
                f" and the source has {wanted.late:,} and {wanted.rejected:,}; its specs are not those of the job, or"
                " the file is of another run: run the job again into another directory"
            )
    return compared


def _outcomes(accounting: Accounting) -> tuple[int, int, int]:
    return accounting.counted + accounting.duplicate, accounting.late, accounting.rejected


def explained(lacking: Mapping[Place, int], parts: Sequence[tuple[str, Mapping[Place, int]]]) -> list[Lost]:
    """Return the parts of a source, or runs of them, whose reports by place are exactly those that are lacking.

    If no part or run has all that is lacking, they are parts and runs that have all of it in each of their places.
    """
    whole = next((lost for lost in _fitting(lacking, parts) if lost.places == lacking), None)
    if whole is not None:
        return [whole]
    left, found = dict(lacking), []
    for lost in _fitting(lacking, parts):
        if all(place in left for place in lost.places):
            found.append(lost)
            for place in lost.places:
                del left[place]
    return found


def _fitting(lacking: Mapping[Place, int], parts: Sequence[tuple[str, Mapping[Place, int]]]) -> Iterator[Lost]:
    """Yield the longest run of parts that ends with each part, if it has all that is lacking in its places."""
    total: Counter[Place] = Counter()
    first = 0
    for last, (name, places) in enumerate(parts):
        total.update(places)
        while first <= last and any(n > lacking.get(place, 0) for place, n in total.items()):
            total.subtract(parts[first][1])
            total = +total
            first += 1
        if total and all(lacking[place] == n for place, n in total.items()):
            yield Lost(parts[first][0], name, last + 1 - first, dict(total))


def lacking_text(key: WindowKey, lacking: int, pane: PaneHeader | None, signed: Extent | None) -> str:
    """Return the line about a window of which reports are in no pane; its job has ``signed`` the last one."""
    received = 0 if pane is None else pane.accounting.received
    there = "no pane is there" if pane is None else f"the newest pane accounts for {number_of(received, 'report')}"
    had = 0 if signed is None else signed.received
    wrote = f", and the job has written one of {number_of(had, 'report')}" if had > received else ""
    source = lacking + received
    return f"{window_name(key)}: {there}{wrote}; the source has {number_of(source, 'report')}"


def compare_sinks(
    sinks: Sequence[str], named: Sequence[Endpoint], out: Path, damaged: Damaged
) -> tuple[list[str], list[str]]:
    """Ask each place that a job records for the newest estimates of results; of a network, only those also named.

    Results may be a stranger's, and a database that they name gets the password of whoever connects. Returns lines
    about places that lack windows or do not answer, and then about those that cannot be asked, or are not.
    """
    faults, notes = list[str](), list[str]()
    of_user = {place.recorded if isinstance(place, RowSink) else str(place): place for place in named}
    for uri in dict.fromkeys((*sinks, *of_user)):
        try:
            sink = of_user.get(uri) or parse_endpoint(uri)
            if isinstance(sink, RowSink) and sink.on_network and uri not in of_user:
                notes.append(f"{uri}: not compared; name it with --estimates-to to let the audit ask it")
                continue
            lacking = Lacking.of(sink, ResultsFolder(out, damaged)) if isinstance(sink, RowSink) else None
        except EndpointError as error:
            faults.append(f"{error}; or take the place out of sinks in {out / JOB}")
            continue
        if lacking is None:
            notes.append(f"{uri}: nobody can ask here which windows it has, so they are not compared")
        elif lacking.windows:
            faults.append(
                f"{sink}: lacks {number_of(len(lacking.windows), 'window')}, the first"
                f" {window_name(lacking.windows[0])}; start the job again with this --estimates-to, or take the place"
                f" out of sinks in {out / JOB}"
            )
    return faults, notes
