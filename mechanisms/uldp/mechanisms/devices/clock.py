"""Whether a ledger believes a time: an observation against the clock of the machine, and this clock against its uptime.

A budget of a period is spent again when the period is over. So whoever moves the clock would have as many budgets as
they like. The kernel counts the time since the machine has started, which nobody can set.
"""

import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple, Protocol

from uldp.schemas.errors import UldpError
from uldp.schemas.records import iso
from uldp.schemas.specs.durations import format_duration, milliseconds

#: How far observations, and jumps of the clock, may be off. Clocks of devices that ask a time server are much nearer.
SKEW = timedelta(hours=1)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Uptime(NamedTuple):
    """How long a machine has been running: a name of this run alone, and milliseconds, also those of sleep."""

    boot: str
    elapsed: int


class Start(NamedTuple):
    """When a run of a machine began, by the earliest time that its clock has ever given for that."""

    boot: str
    time: int  # in milliseconds since 1970-01-01 UTC


class Clock(Protocol):
    """The clock of a machine."""

    def now(self) -> int:
        """Return the time in milliseconds since 1970-01-01 UTC."""

    def uptime(self) -> Uptime | None:
        """Return how long the machine has been running; None if that is not known."""


class SystemClock(Clock):
    """The clock of this machine. Only Linux names its runs."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def uptime(self) -> Uptime | None:
        if sys.platform != "linux":
            return None
        try:
            boot = _BOOT_ID.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return None
        return Uptime(boot, time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000)


class ClockError(UldpError):
    """A ledger does not believe the time of an observation, or the clock."""


def checked_start(known: Start | None, clock: Clock, event_time_ms: int, skew: timedelta) -> Start | None:
    """Check the time of an observation, and return when the machine started, to be kept for the next check.

    Within one run, the clock must not come more than ``skew`` further than the time that has elapsed since any earlier
    check. A clock that is set back passes, because that frees no budget. ``known`` is what the last check returned.
    ClockError if the observation is further from the clock, or the clock has come further than the time.
    """
    now, uptime, most = clock.now(), clock.uptime(), milliseconds(skew)
    off = event_time_ms - now
    if abs(off) > most:
        raise ClockError(
            f"the time of the observation is {_seconds(off)} {'ahead of' if off > 0 else 'behind'} the clock of this"
            f" machine, {iso(now)}, and not within {format_duration(skew)}; report when you observe, in milliseconds,"
            " or say how far times may be off: FileLedger(PATH, skew=timedelta(days=2)), or skew=None for any"
        )
    if uptime is None:
        return known
    start = Start(uptime.boot, now - uptime.elapsed)
    if known is None or known.boot != start.boot:
        return start
    if start.time - known.time > most:
        raise ClockError(
            f"the clock of this machine, {iso(now)}, has come {_seconds(start.time - known.time)} further than the time"
            " since an earlier report; set it right, or if it is right now, restart the machine, or say"
            " FileLedger(PATH, skew=None)"
        )
    return min(known, start)


def jump(last: Start | None, clock: Clock, skew: timedelta) -> tuple[int, Start | None]:
    """Return how many milliseconds the clock has jumped since the last look at it, and what to keep as the last look.

    In another run, or where nothing names runs, the clock is believed, and has not jumped. Nor has it by less than
    ``skew``: such jumps are kept until they add up.
    """
    uptime = clock.uptime()
    if uptime is None:
        return 0, None
    start = Start(uptime.boot, clock.now() - uptime.elapsed)
    if last is None or last.boot != start.boot:
        return 0, start
    jumped = start.time - last.time
    return (jumped, start) if abs(jumped) > milliseconds(skew) else (0, last)


def _seconds(duration_ms: int) -> str:
    return f"{abs(duration_ms) / 1000:,.0f} s"
