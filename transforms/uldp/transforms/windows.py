"""Event-time windows of a spec as Beam windows, with the triggers that publish their panes."""

from functools import lru_cache
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import (
    FixedWindows,
    GlobalWindow,
    GlobalWindows,
    IntervalWindow,
    SlidingWindows,
    WindowFn,
)

from uldp.schemas.specs.durations import format_duration, milliseconds
from uldp.schemas.specs.window import WindowSpec
from uldp.transforms.internals import Duration, Timestamp, WindowedValue, Windowing


class ParDo(beam.ParDo):
    """Beam's ``ParDo``, for a step with several outputs that puts all its elements into the global window.

    The input may have any windows and triggers, because the outputs declare that they have none. ``WindowInto`` before
    the step would not do: it takes an element once for each of its windows, and sliding windows give it several.

    The class has Beam's name, because the name is part of the names of steps.
    """

    def get_windowing(self, inputs: object) -> Windowing:
        """Return the global window, with one pane at its end."""
        return Windowing(GlobalWindows())

    def _add_type_constraint_from_consumer(self, full_label: str, input_type_hints: object) -> None:
        """Ignore what a step of the pipeline expects of one output: Beam would expect it of all outputs."""


def globally(step: beam.DoFn, *tags: str, main: str) -> Any:
    """Run a step with these outputs, as ``ParDo`` says."""
    return ParDo(step).with_outputs(*tags, main=main)  # type: ignore[no-untyped-call]


def at_time(milliseconds_utc: int, value: object) -> WindowedValue:
    """Give ``value`` an element time, in the global window."""
    return WindowedValue(value, Timestamp(micros=milliseconds_utc * 1000), (GlobalWindow(),))


def in_window(start: int, end: int, value: object) -> WindowedValue:
    """Put ``value`` into the window from ``start`` to ``end``, at its last millisecond."""
    last, window = _interval(start, end)
    return WindowedValue(value, last, (window,))


@lru_cache(maxsize=1 << 12)
def _interval(start: int, end: int) -> tuple[Timestamp, IntervalWindow]:
    """Return a window and its last millisecond; cached: Beam takes 10 us for them, and collections share them."""
    window = IntervalWindow(Timestamp(micros=start * 1000), Timestamp(micros=end * 1000))
    return Timestamp(micros=end * 1000 - 1000), window


def window_label(window: WindowSpec) -> str:
    """Name a window policy. It is part of the step names, and so of the identity of state.

    >>> window_label(WindowSpec(size="1h", early_every="30s", allowed_lateness="1d"))
    'Fixed1hEarly30sLate1d'
    """
    shape = f"Fixed{format_duration(window.size)}"
    if window.period is not None:
        shape = f"Sliding{format_duration(window.size)}Every{format_duration(window.period)}"
    if window.offset:
        shape += f"Offset{format_duration(window.offset)}"
    early = f"Early{format_duration(window.early_every)}" if window.early_every is not None else ""
    return f"{shape}{early}Late{format_duration(window.allowed_lateness)}"


def window_fn(window: WindowSpec) -> WindowFn:
    """Return the windows, aligned to 1970-01-01 UTC and ``window.offset``."""
    size = Duration(micros=milliseconds(window.size) * 1000)
    offset = Timestamp(micros=milliseconds(window.offset) * 1000)
    if window.period is None:
        return FixedWindows(size, offset)
    return SlidingWindows(size, Duration(micros=milliseconds(window.period) * 1000), offset)
