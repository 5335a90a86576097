"""What every benchmark gives: rows of one table. And how they are measured: in turn, or in a process of their own."""

import logging
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

#: Seconds of the processor. What is measured with it computes on one thread and waits for nothing, so that on an idle
#: machine this is the time; on one that is shared, it is what the time would be without the others.
clock = time.process_time


class Row(NamedTuple):
    """A row of the table.

    Attributes:
        part: The benchmark.
        label: What was run.
        n: Reports that it took; 1 where it is not reports that cost, as for an estimate.
        seconds: What it took, or None where it could not be run; ``remark`` says why.
        naive: Its rate to that of the naive graph.
        keyed: Its rate to that of the naive graph with the window in the key.
        limit: Its rate to that of its limit: decoding alone, or the counting kernel alone.
        megabytes: Peak of the resident memory of a process that does nothing else.
        remark: Whatever else a reader must know.
    """

    part: str
    label: str
    n: int
    seconds: float | None
    naive: float | None = None
    keyed: float | None = None
    limit: float | None = None
    megabytes: float | None = None
    remark: str = ""

    @property
    def rate(self) -> float | None:
        """How many of ``n`` a second."""
        return None if self.seconds is None else self.n / self.seconds


def markdown(rows: Iterable[Row]) -> Iterator[str]:
    """Write rows as the lines of a Markdown table."""
    yield "| part | | n | seconds | per second | to naive | to keyed | to limit | peak MB | |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
    for row in rows:
        cells = (
            row.part,
            row.label,
            f"{row.n:,}",
            _cell(row.seconds),
            _cell(row.rate),
            _cell(row.naive, "x"),
            _cell(row.keyed, "x"),
            _cell(row.limit, "x"),
            _cell(row.megabytes),
            row.remark,
        )
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _cell(value: float | None, unit: str = "") -> str:
    """Write a number with three digits, or all before the point."""
    if value is None:
        return ""
    return f"{value:,.0f}{unit}" if value >= 100 else f"{value:.3g}{unit}"


def in_turn(calls: Mapping[str, Callable[[], float]], repeat: int) -> dict[str, float]:
    """Call each, then each again: a slow minute of the machine slows them all.

    Args:
        calls: Each returns the seconds that it took.
        repeat: How often.

    Returns:
        The median seconds of each.
    """
    seconds: dict[str, list[float]] = {label: [] for label in calls}
    for _ in range(repeat):
        for label, call in calls.items():
            seconds[label].append(call())
    return {label: statistics.median(taken) for label, taken in seconds.items()}


def timed(call: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    began = clock()
    call()
    return clock() - began


def alone(call: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> tuple[Result, float]:
    """Run a call in a new process.

    Args:
        call: A function that a new process can import.
        args: For it.
        kwargs: For it.

    Returns:
        What it returns, and the peak of the process's resident memory in megabytes.
    """
    # Beam warns at every import of what it can do without.
    with ProcessPoolExecutor(1, get_context("spawn"), partial(logging.disable, logging.WARNING)) as process:
        result = process.submit(call, *args, **kwargs).result()
        return result, process.submit(peak_megabytes).result()


def peak_megabytes() -> float:
    """Return the peak of this process's resident memory, in units of 10^6 bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not getrusage: on Linux a child begins with the peak of its parent.
        lines = dict(line.split(":", 1) for line in status.read_text(encoding="ascii").splitlines())
        return int(lines["VmHWM"].removesuffix("kB")) * 1024 / 1e6
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6 * (1 if sys.platform == "darwin" else 1024)


def print_table(rows: Iterable[Row]) -> None:
    """Print rows as a Markdown table, line by line."""
    for line in markdown(rows):
        print(line, flush=True)
