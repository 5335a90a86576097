"""What a running job says: a line for each pane that fires, and where all reports went at the end."""

from collections import Counter
from collections.abc import Callable, Set
from pathlib import Path

from pipelines.results import ResultsError, newest, read_counts, read_rejected, read_specs
from pipelines.text import accounting_text
from schemas.flags import Flag, withheld
from schemas.records import Accounting, Estimate, PaneKind, SupportCounts, iso


def pane_line(estimate: Estimate) -> str:
    """Write a pane as one line: its window, what came, and the largest value or the tags, ± standard error."""
    support, accounting = estimate.support, estimate.support.accounting
    top = int(estimate.distribution.argmax())
    shares = {name: (tag.mass, tag.stderr) for name, tag in estimate.tags.items()}
    figures = shares or {f"value {top}": (float(estimate.distribution[top]), float(estimate.stderr[top]))}
    return "  ".join(
        [
            iso(support.window_start).replace("T", " ").removesuffix(":00Z"),
            f"{support.pane.kind.replace('_', ' '):<7} #{support.pane.revision:<2}",
            f"n {support.n:>7,}",
            f"duplicate {accounting.duplicate:>3,}",
            f"late {accounting.late:>3,}",
            f"rejected {accounting.rejected:>3,}",
            *(f"{name} {100 * share:.2f}±{100 * stderr:.2f} %" for name, (share, stderr) in figures.items()),
            *(f"[{flag}]" for flag in estimate.support.flags),
        ]
    )


def announce_pane(say: Callable[[str], None], estimate: Estimate) -> None:
    """Say a pane that counts something new: after a window has closed, panes only amend its accounting."""
    support = estimate.support
    if support.pane.kind is not PaneKind.LATE or not support.accounting.late:
        say(pane_line(estimate))


def announce_stopped(say: Callable[[str], None], stopping: Set[tuple[str, int]], support: SupportCounts) -> None:
    """Say that no estimate of a window is published, because its collection stops at so many rejected reports."""
    if (support.collection, support.version) in stopping and Flag.REJECTED_RATIO in support.flags:
        share = support.accounting.rejected / support.accounting.received
        window = iso(support.window_start).replace("T", " ").removesuffix(":00Z")
        say(f"{window}  {support.collection} v{support.version} is stopped: {share:.0%} of the reports were rejected")


def summary(out: Path) -> str:
    """Say where all reports in ``out`` went, by collection and in total.

    Reports that were rejected before they named a window of a collection are in the total alone.

    Raises:
        ResultsError: if there is no result at all.
    """
    specs = read_specs(out)
    reasons = Counter(record.reason for record in read_rejected(out))
    try:
        panes = newest(read_counts(out))
    except ResultsError:
        if not reasons:
            raise
        panes = []
    lines = []
    total = Accounting()
    for key, spec in specs.items():
        mine = [pane for pane in panes if (pane.collection, pane.version) == key]
        name = f"{spec.collection} v{spec.version}"
        if spec.window.period is not None:
            lines.append(f"{name}: {len(mine)} sliding windows, in which a report stands more than once")
        else:
            subtotal = sum((pane.accounting for pane in mine), Accounting())
            total += subtotal
            lines.append(f"{name}: {len(mine)} windows, {accounting_text(subtotal)}")
        flags = Counter(flag for pane in mine for flag in pane.flags)
        if flags:
            lines.append("  flagged: " + ", ".join(f"{windows} {flag}" for flag, windows in sorted(flags.items())))
        if silent := sum(withheld(spec.limits, pane.flags) for pane in mine):
            lines.append(f"  no estimate is published of {silent} windows; uldp show names them")
    nameless = sum(reasons.values()) - total.rejected
    lines.append(f"in all: {accounting_text(total + Accounting(received=nameless, rejected=nameless))}")
    if reasons:
        lines.append("rejected: " + ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items())))
    return "\n".join(lines)
