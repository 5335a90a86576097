"""Keeps Beam's local runner from looking through the timers of all keys for each bundle.

``BundleBasedDirectRunner`` asks each key of each step for the timers that are due, after each bundle and at each event
of the clock. With the early panes of 1,000 collections, these are 1,000 keys, and most of what the job costs.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from apache_beam.transforms.timeutil import TimeDomain

from uldp.transforms.internals import evaluation_context, transform_watermarks
from uldp.transforms.io.local.lighter_runner import replaced

# The clock is a float, and timers are whole microseconds. If a timer is this near, in seconds, the runner looks itself.
_NEAR = 1e-3


class _Due(NamedTuple):
    """When the first timers are due, in seconds since 1970: by the watermark, and by the clock."""

    watermark: float = math.inf
    clock: float = math.inf

    @classmethod
    def of(cls, windows: Mapping[Any, Mapping[tuple[str, str, str], Any]]) -> "_Due":
        """Return it for the timers of a key, by window."""
        seconds: dict[str, float] = {}
        for timers in windows.values():
            for (_, domain, _), moment in timers.items():
                seconds[domain] = min(seconds.get(domain, math.inf), moment.micros / 1e6)
        return cls(seconds.get(TimeDomain.WATERMARK, math.inf), seconds.get(TimeDomain.REAL_TIME, math.inf))


class _Timers:
    """The timers of a step.

    Attributes:
        states: The states of its keys, as the runner holds them.
        first: When the first timers of all keys are due.
    """

    def __init__(self, states: Mapping[Any, Any]) -> None:
        self.states, self.first = states, _Due()
        self._due: dict[Any, _Due] = {}

    def update(self, changed: Mapping[Any, Any]) -> None:
        """Take the new states of some keys."""
        for key, state in changed.items():
            due = _Due.of(state.timers)
            if due == _Due():
                self._due.pop(key, None)
            else:
                self._due[key] = due
        self.first = _Due(
            min((due.watermark for due in self._due.values()), default=math.inf),
            min((due.clock for due in self._due.values()), default=math.inf),
        )


@contextmanager
def next_timers() -> Iterator[None]:
    """Make the local runner know when the next timer of a step is due, which only its bundles change."""
    runner, watermarks = evaluation_context(), transform_watermarks()
    handle, extract = runner.handle_result, watermarks.extract_transform_timers
    steps: dict[int, _Timers] = {}

    def handled(context: Any, bundle: Any, timers: Any, result: Any) -> Any:
        committed = handle(context, bundle, timers, result)
        if result.partial_keyed_state:
            states = context._transform_keyed_states[result.transform]
            steps.setdefault(id(states), _Timers(states)).update(result.partial_keyed_state)
        return committed

    def extracted(step: Any) -> tuple[list[Any], bool]:
        timers = steps.get(id(step._keyed_states))
        if timers is None:
            return extract(step)  # type: ignore[no-any-return]
        first = timers.first
        if first.watermark <= step.input_watermark.micros / 1e6 + _NEAR or first.clock <= step._clock.time() + _NEAR:
            return extract(step)  # type: ignore[no-any-return]
        return [], first.clock < math.inf

    with (
        replaced(runner, "handle_result", handled),
        replaced(watermarks, "extract_transform_timers", extracted),
    ):
        yield
