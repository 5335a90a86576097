"""Progress lines of a running job: its source, each pane that fires, its position in between, and a final summary."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

from uldp.collector.shared_specs import SharedSpecs
from uldp.pipelines.caveats import coarse_times, few_reports
from uldp.pipelines.results.files import Damaged, finished, refuse
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest, total_accounting
from uldp.pipelines.results.specs import missing_spec
from uldp.pipelines.results.tables import headlines
from uldp.pipelines.results.text import accounting_text, minute_text, number_of
from uldp.schemas.estimate import Estimate
from uldp.schemas.flags import Flag, meaning, withheld
from uldp.schemas.pane import Accounting, PaneKind
from uldp.schemas.records import iso, missing_messages
from uldp.schemas.rejected import count_reasons
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import milliseconds
from uldp.schemas.specs.mistakes import printable
from uldp.schemas.specs.window import WindowSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.folders import COUNTS
from uldp.transforms.per_process import Itself


def pane_line(estimate: Estimate, spec: CollectionSpec) -> str:
    """Write a pane as one line: its window, its accounting, and the figures of ``headlines``."""
    accounting = estimate.accounting
    return "  ".join(
        [
            minute_text(estimate.window_start),
            f"{estimate.pane.kind.replace('_', ' '):<7} #{estimate.pane.revision:<2}",
            f"n {estimate.n:>7,}",
            f"duplicate {accounting.duplicate:>3,}",
            f"late {accounting.late:>3,}",
            f"rejected {accounting.rejected:>3,}",
            *headlines(estimate, spec),
            *(f"[{flag}]" for flag in estimate.flags),
        ]
    )


def pane_lines(estimates: Iterable[Estimate], specs: SharedSpecs) -> Iterator[str]:
    """Yield the lines of a bundle's panes: one for each on time, and one for all early and for all late panes of a key.

    A late pane that counts no further report only amends the accounting, and has none.
    """
    together = defaultdict[tuple[object, ...], list[Estimate]](list)
    for estimate in estimates:
        before = estimate.supersedes
        if estimate.pane.kind is PaneKind.ON_TIME:
            yield pane_line(estimate, specs.of_pane(estimate))
        elif estimate.pane.kind is PaneKind.EARLY or before is None or estimate.n > before.n:
            together[estimate.collection, estimate.version, estimate.pane.kind].append(estimate)
    for panes in together.values():
        newest = max(panes, key=lambda pane: pane.window_start)
        others = f"  and {number_of(len(panes) - 1, 'earlier window')}" if len(panes) > 1 else ""
        yield pane_line(newest, specs.of_pane(newest)) + others


def announce_stopped(say: Callable[[str], None], specs: SharedSpecs, pane: Statistic) -> None:
    """Announce that a window gets no estimate, because its collection stops above a share of rejected reports."""
    if Flag.REJECTED_RATIO in pane.flags and specs.of_pane(pane).limits.when_exceeded == "stop":
        share = pane.accounting.rejected / pane.accounting.received
        window = minute_text(pane.window_start)
        say(f"{window}  {pane.collection} v{pane.version} is stopped: {share:.0%} of the reports were rejected")


def following(specs: Iterable[CollectionSpec], source: object, out: object) -> str:
    """Return the line that names the source, the results directory and the collections of a job."""
    return f"following {source} into {out}: {', '.join(f'{spec.collection} v{spec.version}' for spec in specs)}"


def marked_incomplete(windows: int) -> str:
    """Return the line that says how many windows a stopped job has left incomplete."""
    return f"{number_of(windows, 'open window')} {'is' if windows == 1 else 'are'} marked incomplete"


class Heartbeat(Itself):
    """Prints lines, and a position after a silence, from a thread of its context."""

    #: Default number of seconds without a line before it prints the position.
    EVERY = 10.0

    def __init__(self, say: Callable[[str], None], position: Callable[[], str], every: float | None = None) -> None:
        self._say = say
        self._position = position
        self._every = self.EVERY if every is None else every
        self._said = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __call__(self, line: str) -> None:
        """Print a line."""
        self._said = time.monotonic()
        self._say(line)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def silence_left(self) -> float:
        """Return the seconds that remain until the silence has lasted long enough, at least 0."""
        return max(self._said + self._every - time.monotonic(), 0.0)

    def _beat(self) -> None:
        while not self._ended.wait(self.silence_left()):
            if not self.silence_left():
                self(self._position())


def position(
    windows: Sequence[WindowSpec], *, messages: int, segments: int, ahead: int, watermark: int | None, early_ms: int = 0
) -> str:
    """Return a line that says which part of a local stream, up to the watermark in milliseconds, a job has read."""
    read = f"{number_of(messages, 'message')} of {number_of(segments, 'segment')} read"
    if ahead:
        then = f"{number_of(ahead, 'segment')} to go"
    elif watermark is None:
        then = "no watermark yet"
    else:
        end = min(next_end(window, watermark) for window in windows)
        then = f"watermark {iso(watermark)}, the next window can fire when it reaches {iso(end)}"
    warning = f"; {early(early_ms)}" if early_ms else ""
    return f"nothing new at {iso(int(time.time()) * 1000)}: {read}, {then}{warning}"


def early(early_ms: int) -> str:
    """Return a text about a watermark that is so many milliseconds ahead of the clock."""
    return f"the watermark is ahead of the clock by {early_ms // 1000:,} s, and reports until then count as late"


def progress_of(out: Path | None) -> str:
    """Say that a cluster job runs, and how many files of panes there are: panes share them, too many to look into."""
    running = f"the job runs at {iso(int(time.time()) * 1000)}"
    if out is None:
        return running
    files = len(finished(out, f"{COUNTS}/*.avro"))
    return f"{running}: {number_of(files, 'file')} of panes in {out}"


def next_end(window: WindowSpec, after: int) -> int:
    """Return the first end of a window after a time, in milliseconds."""
    period = milliseconds(window.period or window.size)  # the period divides the size, so windows end at its multiples
    return after + period - after % period


def summary(out: Path, damaged: Damaged = refuse, *, private: Path | None = None) -> str:
    """Summarize the accounting in ``out``, by collection, and in total, which alone has reports of no window."""
    folder = ResultsFolder(out, damaged, private)
    specs, reasons = folder.specs, count_reasons(folder.rejected())
    panes = newest(folder.panes())
    lines = []
    total = Accounting()
    for collection, version in sorted({pane.key[:2] for pane in panes} - specs.keys()):
        damaged(missing_spec(f"{collection}-v{version}"))
    for key, spec in specs.items():
        mine = [pane for pane in panes if (pane.collection, pane.version) == key]
        name = f"{spec.collection} v{spec.version}"
        subtotal = total_accounting(mine)
        total += subtotal
        windows = number_of(len(mine), "window" if spec.window.period is None else "sliding window")
        lines.append(f"{name}: {windows}, {accounting_text(subtotal)}")
        lines += [f"  {caveat}" for caveat in (few_reports(mine), coarse_times(spec, mine)) if caveat]
        flags = Counter(flag for pane in mine for flag in pane.flags)
        lines += [f"  flagged: {windows} {flag}: {meaning(flag)}" for flag, windows in sorted(flags.items())]
        if unpublished := sum(withheld(spec.limits, pane.flags) for pane in mine):
            them = "it" if unpublished == 1 else "them"
            lines.append(f"  no estimate is published of {number_of(unpublished, 'window')}; uldp show names {them}")
    # The difference is below 0 if files of rejected reports are damaged or missing.
    nameless = max(sum(reasons.values()) - total.rejected, 0)
    missing = missing_messages(folder.missing())
    lost = f"; {number_of(missing, 'message')} missing" if missing else ""
    lines.append(f"in all: {accounting_text(total + Accounting(received=nameless, rejected=nameless))}{lost}")
    if reasons:
        lines.append("rejected: " + ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items())))
    if left_out := folder.left_out():
        lines.append(left_out)
    return "\n".join(map(printable, lines))
