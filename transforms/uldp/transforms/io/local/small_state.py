"""Keeps the state of Beam's local runner small, from the outside: the runner itself would keep each key.

``BundleBasedDirectRunner`` holds an object for each key of a step, also when the step has cleared its state and has no
timer. It looks through all of them for each bundle. Each window of a stream is a key.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from uldp.transforms.internals import evaluation_context


@contextmanager
def small_state() -> Iterator[None]:
    """While the context lasts, jobs of this process on Beam's local runner forget keys without state and timers."""
    runner = evaluation_context()
    handle = runner.handle_result

    def handled(context: Any, bundle: Any, timers: Any, result: Any) -> Any:
        committed = handle(context, bundle, timers, result)
        kept = context._transform_keyed_states[result.transform]
        for key, state in result.partial_keyed_state.items():
            if not any(map(any, map(dict.values, (*state.state.values(), *state.timers.values())))):
                kept.pop(key, None)
        return committed

    runner.handle_result = handled
    try:
        yield
    finally:
        runner.handle_result = handle
