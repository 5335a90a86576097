"""A clock that a test sets, for a whole process: ``python -m tests.pipelines.year.clock FILE uldp-arguments...``.

Commands take the time of the machine, so a test of a year changes what the machine says: ``time.time`` alone. Seconds
that a process measures, and the times of files, stay those of the machine.
"""

import mmap
import signal
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

_SECONDS = struct.Struct("d")


class SetClock:
    """A clock in a file, which a test sets and all processes read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            path.write_bytes(_SECONDS.pack(0.0))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _SECONDS.size)

    def set(self, milliseconds: int) -> None:
        self._memory[:] = _SECONDS.pack(milliseconds / 1000)

    def __call__(self) -> float:
        seconds: float = _SECONDS.unpack(self._memory[:])[0]
        return seconds


def main() -> None:
    """Run a command by the clock of a file."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
    clock: Callable[[], float] = SetClock(Path(sys.argv.pop(1)))
    time.time = clock

    from uldp.pipelines.cli import main as uldp
    from uldp.pipelines.jobs.spec_watch import SpecWatch

    SpecWatch.EVERY = SpecWatch.AT_ONCE = 0.0  # between two segments are minutes of this clock
    uldp()


if __name__ == "__main__":
    main()
