"""What a running job says: a line for each pane that fires, and where all reports went at the end."""

from collections import Counter
from pathlib import Path

from pipelines.results import ResultsError, accounting_text, newest, read_counts, read_rejected, read_specs, window_text
from schemas.records import Accounting, Estimate


def pane_line(estimate: Estimate) -> str:
    """Write a pane as one line.

    The largest value is shown with its standard error, so that one sees the estimate settle as reports come in.
    """
    support = estimate.support
    top = int(estimate.distribution.argmax())
    tags = "".join(f"  {name} {100 * tag.mass:.1f}±{100 * tag.stderr:.1f} %" for name, tag in estimate.tags.items())
    flags = "".join(f"  [{flag}]" for flag in estimate.flags)
    a = support.accounting
    return (
        f"{window_text(support)}  {support.pane.kind.replace('_', ' '):<7} #{support.pane.revision:<3}"
        f" n {support.n:>9,}  duplicate {a.duplicate:>5,}  late {a.late:>5,}  rejected {a.rejected:>5,}"
        f"  top {top}: {100 * estimate.distribution[top]:.2f}±{100 * estimate.stderr[top]:.2f} %{tags}{flags}"
    )


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
            continue
        subtotal = sum((pane.accounting for pane in mine), Accounting())
        total += subtotal
        lines.append(f"{name}: {len(mine)} windows, {accounting_text(subtotal)}")
    nameless = sum(reasons.values()) - total.rejected
    if nameless > 0:
        lines.append(f"rejected before they named a window: {nameless:,}")
    if reasons:
        lines.append("rejected: " + ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items())))
    return "\n".join(lines)
