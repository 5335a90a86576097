"""The windows of a collection: event time is cut into slices, and a window is one slice or several."""

from datetime import timedelta
from typing import Literal, Self, TypeVar

from pydantic import Field, model_validator

from uldp.schemas.arrays import Times
from uldp.schemas.specs.durations import Duration, format_duration, milliseconds
from uldp.schemas.specs.strict import Strict

#: One time, or many.
AnyTime = TypeVar("AnyTime", int, Times)

#: The most windows that count one report: its place in each of them takes time and memory.
MAX_WINDOWS_OF_A_REPORT = 10_000
#: The longest window. Reports may be of any time before the year 9000, and text of times has years of four digits.
MAX_WINDOW = timedelta(days=365_000)


class WindowSpec(Strict):
    """Event-time windows: fixed, or sliding by ``period``."""

    size: Duration
    period: Duration | None = None
    #: By how much later windows begin than at multiples of the slice since 1970-01-01 UTC.
    offset: Duration = timedelta(0)
    early_every: Duration | None = None
    allowed_lateness: Duration = timedelta(0)
    #: Whether each late report has a pane, although it differs from the one before by few reports.
    exact_late: bool = False

    @property
    def slice(self) -> timedelta:
        """The length of a time slice: windows begin and end at multiples of it, ``offset`` later."""
        return self.period or self.size

    def slice_start(self, time: AnyTime) -> AnyTime:
        """Return the start of the time slice that holds a time; both are milliseconds since 1970-01-01 UTC."""
        size, offset = milliseconds(self.slice), milliseconds(self.offset)
        return (time - offset) // size * size + offset

    def splits(self, before: Self) -> str | None:
        """Return which key cuts apart slices of ``before``, to which devices round times; None if none does."""
        if self.slice % before.slice:
            key, now = ("size" if self.period is None else "period"), self.slice
        elif (self.offset - before.offset) % before.slice:
            key, now = "offset", self.offset
        else:
            return None
        return (
            f"window.{key}, {format_duration(now)}, cuts apart slices of {format_duration(before.slice)}, by which"
            " devices of this version may round event times; give the spec a new version"
        )

    @model_validator(mode="after")
    def _fits(self) -> "WindowSpec":
        if not self.size:
            raise ValueError("size must be more than 0")
        if self.size > MAX_WINDOW:
            raise ValueError(f"size must be {format_duration(MAX_WINDOW)} or less")
        if self.early_every is not None and (not self.early_every or self.early_every.microseconds):
            raise ValueError("early_every must be one or more whole seconds; leave it out for no early panes")
        if self.period is not None and (not self.period or self.size % self.period):
            raise ValueError(f"size must be a multiple of period; {format_duration(self.period)} does not divide it")
        if self.offset >= self.slice:
            key, slices = ("size" if self.period is None else "period"), format_duration(self.slice)
            raise ValueError(
                f"offset must be less than {key}, {slices}; {format_duration(self.offset)} means the same windows as"
                f" {format_duration(self.offset % self.slice)}"
            )
        if (windows := self.size // self.slice) > MAX_WINDOWS_OF_A_REPORT:
            least = timedelta(milliseconds=-(-milliseconds(self.size) // MAX_WINDOWS_OF_A_REPORT))
            raise ValueError(
                f"period: each report would count in {windows:,} windows, and {MAX_WINDOWS_OF_A_REPORT:,} is the most;"
                f" write a period of {format_duration(least)} or more"
            )
        return self


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
