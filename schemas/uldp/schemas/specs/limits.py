"""The limits of a collection: what withholds or flags an estimate, and what rejects a report."""

from datetime import timedelta
from typing import Literal

from pydantic import Field, model_validator

from uldp.schemas.specs.durations import Duration
from uldp.schemas.specs.strict import Strict


class Limits(Strict):
    """Limits at which the job withholds or flags an estimate, or rejects a report."""

    min_reports: int = Field(default=100, ge=1)
    max_rejected_ratio: float | None = Field(default=None, gt=0, le=1)
    #: The reaction to a window above ``max_rejected_ratio``: flag its estimate, or publish no estimate.
    when_exceeded: Literal["flag", "stop"] = "flag"
    #: No default, because each transport has its own share of copies: devices and brokers send again.
    max_duplicate_ratio: float | None = Field(default=None, gt=0, le=1)
    max_reports_per_sender: int | None = Field(default=None, ge=1)
    #: Whether further reports of a sender are rejected, and not only flagged.
    cap_senders: bool = False
    max_clock_skew: Duration = timedelta(minutes=10)
    max_age: Duration | None = None

    @model_validator(mode="after")
    def _fits(self) -> "Limits":
        if self.when_exceeded == "stop" and self.max_rejected_ratio is None:
            raise ValueError("when_exceeded: stop needs max_rejected_ratio, the share of rejected reports to stop at")
        if self.cap_senders and self.max_reports_per_sender is None:
            raise ValueError("cap_senders needs max_reports_per_sender, the reports of a sender that a window counts")
        return self
