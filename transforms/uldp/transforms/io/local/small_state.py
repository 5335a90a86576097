"""Keeps the state of Beam's local runner small, from the outside: the runner itself would keep all that it ever saw.

``BundleBasedDirectRunner`` holds each part of each window in a list, and copies the lists for each bundle. It ignores
what comes for a window that has expired, but never removes its list. Here, windows are removed once they have fired and
expired, and the parts of the other windows are replaced by their sum: panes are sums of all parts anyway.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from uldp.collector.partial import Partial
from uldp.transforms.internals import GeneralTriggerDriver, MergeableStateAdapter, Timestamp, local_evaluator

#: The names of the runner's state of a window.
_ELEMENTS = GeneralTriggerDriver.ELEMENTS.tag
_FIRED = GeneralTriggerDriver.NONSPECULATIVE_INDEX.tag
_HOLDS = "watermark"


@contextmanager
def small_state() -> Iterator[None]:
    """While the context lasts, jobs of this process on Beam's local runner keep little state."""
    evaluator = local_evaluator()
    create = evaluator.create_trigger_driver
    evaluator.create_trigger_driver = lambda *given, **named: _Driver(create(*given, **named))
    try:
        yield
    finally:
        evaluator.create_trigger_driver = create


class _Driver:
    """Fires windows as the driver of the runner does, and tidies the state of the key behind it."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def process_elements(self, state: Any, values: Any, output_watermark: Any, input_watermark: Any) -> Iterator[Any]:
        """Take elements of a key."""
        yield from self._driver.process_elements(state, values, output_watermark, input_watermark)
        self._tidy(state, input_watermark)

    def process_timer(
        self, window_id: int, name: str, time_domain: str, timestamp: Timestamp, state: Any, input_watermark: Any
    ) -> Iterator[Any]:
        """Take a timer of a key, unless its window has been removed since the timer was due."""
        if any(window_id in ids for ids in MergeableStateAdapter(state).window_ids.values()):
            yield from self._driver.process_timer(window_id, name, time_domain, timestamp, state, input_watermark)
            self._tidy(state, input_watermark)

    def _tidy(self, state: Any, watermark: Timestamp) -> None:
        """Remove windows that nothing can change any more, and add up the parts of the others."""
        adapter = MergeableStateAdapter(state)
        for window, ids in list(adapter.window_ids.items()):
            # A window whose timer is under way has not fired on time yet, although the watermark may be far behind it.
            fired = any(state.state[each].get(_FIRED) for each in ids) and not any(map(state.timers.get, ids))
            if fired and watermark > window.end + self._driver.allowed_lateness:
                for each in ids:
                    state.state.pop(each, None)
                del adapter.window_ids[window]
                adapter._persist_window_ids()
            else:
                for each in ids:
                    _add_up(state.state[each])


def _add_up(state: dict[str, list[Any]]) -> None:
    parts, holds = state.get(_ELEMENTS, []), state.get(_HOLDS, [])
    if len(parts) > 1 and all(isinstance(part, Partial) for part in parts):
        state[_ELEMENTS] = [sum(parts, Partial())]
    if len(holds) > 1:
        state[_HOLDS] = list(dict.fromkeys(holds))
