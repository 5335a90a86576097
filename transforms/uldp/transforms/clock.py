"""The clock of early panes: that of the wall, or that of Beam's local runner while a ``TestStream`` moves it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_clock: list[Callable[[], float]] = [time.time]


def now() -> float:
    """Return the seconds since 1970 by the clock by which the runner fires timers."""
    return _clock[-1]()


@contextmanager
def clock_of_test_stream() -> Iterator[None]:
    """While the context lasts, take the time from the ``TestStream`` of the job that this process runs, if it has one.

    The ``BundleBasedDirectRunner`` fires the timers of such a job by a clock that begins in 1970, and that it shows to
    no step. Without this context, a stream in a test has no early panes; docs/beam.md has an example.
    """
    from uldp.transforms.io.local import runner_internals

    runner: Any = runner_internals.direct_runner
    make, before = runner.TestClock, len(_clock)

    def made(*given: Any) -> Any:
        clock = make(*given)
        _clock.append(clock.time)
        return clock

    runner.TestClock = made
    try:
        yield
    finally:
        runner.TestClock = make
        del _clock[before:]
