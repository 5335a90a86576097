"""What other processes have taken of the processor, as Linux tells it."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
#: Columns of ``/proc/PID/stat`` behind the name of the process: its session, and its time with that of the children
#: that it has waited for.
_SESSION, _TIMES = 3, slice(11, 15)


def seconds_of(processes: Iterable[int]) -> float:
    """Return the seconds of the processor that these processes have taken; none for one that has ended."""
    return sum(sum(map(int, columns[_TIMES])) for columns in map(_columns, processes) if columns) / _TICKS


def session(leader: int) -> Iterator[int]:
    """Yield the processes of a session: its leader, and all that it has started, unless they have left it."""
    for folder in Path("/proc").glob("[0-9]*"):
        if (columns := _columns(int(folder.name))) and int(columns[_SESSION]) == leader:
            yield int(folder.name)


def _columns(process: int) -> list[str]:
    with contextlib.suppress(OSError):  # it has ended
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return []
