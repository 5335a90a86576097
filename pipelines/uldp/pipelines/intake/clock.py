"""The clock that stamps posts: no moment in which the machine's clock is wrong puts a message into another time.

A wrong stamp ahead of the time cannot be taken back: who reads the stream later takes all messages behind it for late.
"""

import time
from collections.abc import Callable


class SteadyClock:
    """Goes on by a clock that nobody sets, and follows the machine's ``wall`` clock, in milliseconds.

    If both differ by more than ``TOLERANCE``, somebody has set the machine's clock, or it is wrong for a moment. The
    steady clock follows it only once both have differed by as much for ``DOUBT`` seconds, and says so.
    """

    TOLERANCE, DOUBT = 1000, 60.0

    def __init__(
        self, wall: Callable[[], int], say: Callable[[str], None], steady: Callable[[], float] | None = None
    ) -> None:
        self._wall, self._say, self._steady = wall, say, steady or _uptime
        self._offset = wall() - self._milliseconds()
        self._last = 0
        self._doubt: tuple[int, int] | None = None

    def _milliseconds(self) -> int:
        return int(self._steady() * 1000)

    def now(self) -> int:
        """Return the time in milliseconds, which never falls but when the clock is set back."""
        steady, wall = self._milliseconds(), self._wall()
        ahead = wall - steady - self._offset
        if abs(ahead) <= self.TOLERANCE:
            self._offset += ahead
            self._doubt = None
        elif self._doubt is None or abs(ahead - self._doubt[1]) > self.TOLERANCE:
            self._doubt = steady, ahead
        elif steady - self._doubt[0] >= 1000 * self.DOUBT:
            self._offset, self._last, self._doubt = self._offset + ahead, 0, None
            self._say(
                f"the clock of this machine was set {'ahead' if ahead > 0 else 'back'} by {abs(ahead) / 1000:,.0f} s;"
                f" messages of the last {self.DOUBT:.0f} s were stamped by the time before, and others are by this one"
            )
        self._last = max(self._last, steady + self._offset)
        return self._last


def _uptime() -> float:
    """Return seconds of a clock that nobody sets, and that goes on while the machine sleeps if it can."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)  # of Linux
    return time.monotonic() if boot is None else time.clock_gettime(boot)
