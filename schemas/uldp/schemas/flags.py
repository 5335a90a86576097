"""The closed set of flags: reasons to distrust a window. No job corrects a flagged estimate; the analyst decides."""

from collections.abc import Collection
from enum import StrEnum

from uldp.schemas.specs.window import Limits


class Flag(StrEnum):
    """A reason to distrust a window. Names are stable, because jobs write them to disk."""

    FEW_REPORTS = "few_reports"
    FEW_OF_VARIABLE = "few_of_variable"
    FEW_MORE = "few_more"
    FEW_AT_ENDS = "few_at_ends"
    REJECTED_RATIO = "rejected_ratio"
    DUPLICATE_RATIO = "duplicate_ratio"
    INCOMPLETE = "incomplete"
    PARTLY_OPEN = "partly_open"
    MISSING_REPORTS = "missing_reports"
    IMPROBABLE_PAYLOADS = "improbable_payloads"
    EQUAL_PAYLOADS = "equal_payloads"
    IMPROBABLE_COUNTS = "improbable_counts"
    IMPROBABLE_STRATA = "improbable_strata"
    LEVELS_DIFFER = "levels_differ"
    SETS_CUT = "sets_cut"
    BUSY_SENDER = "busy_sender"
    SPEC_REFUSED = "spec_refused"


#: For each flag, one line that explains to a reader when a job raises it.
MEANING: dict[Flag, str] = {
    Flag.FEW_REPORTS: "fewer reports than limits.min_reports were counted, in all or of each variable of the record; "
    "no estimate is published",
    Flag.FEW_OF_VARIABLE: "fewer reports than limits.min_reports were counted of a variable of the record; it has no "
    "tables",
    Flag.FEW_MORE: "fewer late reports than limits.min_reports came since the newest pane with an estimate; that "
    "estimate stays",
    Flag.FEW_AT_ENDS: "the first or the last time slice of a sliding window has fewer reports than "
    "limits.min_reports; no estimate is published",
    Flag.REJECTED_RATIO: "a larger share of the reports was rejected than limits.max_rejected_ratio",
    Flag.DUPLICATE_RATIO: "a larger share of the reports were duplicates than limits.max_duplicate_ratio",
    Flag.INCOMPLETE: "the job was stopped or drained before the window had ended; reports are missing",
    Flag.PARTLY_OPEN: "the spec opened after the window had begun, or closed before it had ended; reports that were "
    "published at another time were rejected",
    Flag.MISSING_REPORTS: "the source lost messages before they could be read, while the window was open",
    Flag.IMPROBABLE_PAYLOADS: "more payloads are improbable, such as by too many set bits, than honest devices send",
    Flag.EQUAL_PAYLOADS: "more payloads are equal than honest devices send",
    Flag.IMPROBABLE_COUNTS: "no distribution of true values makes this statistic probable",
    Flag.IMPROBABLE_STRATA: "more or fewer reports are about a variable of the record than its share makes probable",
    Flag.LEVELS_DIFFER: "the users of one level of privacy hold other values than those of another",
    Flag.SETS_CUT: "more than 10 % of users hold more items than at_most, and their sets are cut",
    Flag.BUSY_SENDER: "one sender key came with more reports than limits.max_reports_per_sender",
    Flag.SPEC_REFUSED: "the file of the spec has changed into one that the job refused; the spec before it counts",
}


def meaning(flag: str) -> str:
    """Return what a flag says, in words."""
    return MEANING[Flag(flag)] if flag in set(Flag) else "of another version of uldp"


def withheld(limits: Limits, flags: Collection[str]) -> bool:
    """Return whether a window with these flags gets no published estimate."""
    stopped = limits.when_exceeded == "stop" and Flag.REJECTED_RATIO in flags
    return stopped or not {Flag.FEW_REPORTS, Flag.FEW_AT_ENDS}.isdisjoint(flags)


def held_back(flags: Collection[str]) -> bool:
    """Return whether a pane with these flags replaces no published one, because it has few reports more."""
    return Flag.FEW_MORE in flags
