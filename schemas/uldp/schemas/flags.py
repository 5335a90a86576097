"""The closed set of flags: reasons to distrust a window. Nothing is corrected for them; a person decides."""

from collections.abc import Collection
from enum import StrEnum

from uldp.schemas.collection import Limits


class Flag(StrEnum):
    """Why a window is not to be trusted as it is. Names are stable: they are written to disk."""

    FEW_REPORTS = "few_reports"
    REJECTED_RATIO = "rejected_ratio"
    INCOMPLETE = "incomplete"
    IMPROBABLE_BITS = "improbable_bits"
    IMPROBABLE_COUNTS = "improbable_counts"
    BUSY_SENDER = "busy_sender"


#: One line each for a person: when it is raised.
MEANING: dict[Flag, str] = {
    Flag.FEW_REPORTS: "fewer reports than limits.min_reports were counted; no estimate is published",
    Flag.REJECTED_RATIO: "a larger share of the reports was rejected than limits.max_rejected_ratio",
    Flag.INCOMPLETE: "the job was stopped or drained before the window had ended; reports are missing",
    Flag.IMPROBABLE_BITS: "more reports have improbably many or few bits set than honest devices send",
    Flag.IMPROBABLE_COUNTS: "no distribution of true values makes these support counts probable",
    Flag.BUSY_SENDER: "one sender key came with more reports than limits.max_reports_per_sender",
}


def withheld(limits: Limits, flags: Collection[str]) -> bool:
    """Say whether no estimate is published of a window with these flags."""
    stopped = limits.when_exceeded == "stop" and Flag.REJECTED_RATIO in flags
    return stopped or Flag.FEW_REPORTS in flags
