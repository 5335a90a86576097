"""Replaces parts of Beam's local runner by ones that cost less, for as long as a context lasts.

``BundleBasedDirectRunner`` does much for each bundle that the jobs of this project do not need. Each function of this
module says what, and what holds instead. ``next_timers`` and ``remembered_specs`` are further replacements.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from uldp.transforms.internals import evaluation_context, transform_evaluator, unmerged_state


@contextmanager
def replaced(owner: Any, name: str, by: Any) -> Iterator[None]:
    """Replace an attribute of a module or of a class while the context lasts."""
    before = getattr(owner, name)
    setattr(owner, name, by)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def copied_state() -> Iterator[None]:
    """Copy a key's state by its entries, without timers, which are numbers that nobody changes: that takes .1 ms."""
    state = unmerged_state()
    whole = state.copy

    def copied(this: Any) -> Any:
        if this.global_state:  # of a trigger, which no step here has
            return whole(this)
        clone = state()
        clone.timers.update((window, dict(timers)) for window, timers in this.timers.items())
        for window, values in this.state.items():
            clone.state[window].update((tag, list(entries)) for tag, entries in values.items())
        return clone

    with replaced(state, "copy", copied):
        yield


@contextmanager
def copied_steps() -> Iterator[None]:
    """Copy a step by its attributes, where the runner pickles it for each bundle, which takes half a millisecond.

    What a ``DoFn`` changes, it must make in ``setup`` or ``start_bundle``: its copies share what it was made with.
    """
    with replaced(transform_evaluator(), "pickler", SimpleNamespace(roundtrip=copy.copy)):
        yield


@contextmanager
def full_bundles() -> Iterator[None]:
    """Hand on bundles that have elements alone: the others change nothing, and are what an idle stream costs."""
    runner = evaluation_context()
    handle = runner.handle_result

    def handled(context: Any, bundle: Any, timers: Any, result: Any) -> Any:
        return [each for each in handle(context, bundle, timers, result) if each.has_elements()]

    with replaced(runner, "handle_result", handled):
        yield


@contextmanager
def small_state() -> Iterator[None]:
    """Forget keys without state and timers, one for each window: the runner looks through all for each bundle."""
    runner = evaluation_context()
    handle = runner.handle_result

    def handled(context: Any, bundle: Any, timers: Any, result: Any) -> Any:
        committed = handle(context, bundle, timers, result)
        kept = context._transform_keyed_states[result.transform]
        for key, state in result.partial_keyed_state.items():
            if not any(map(any, map(dict.values, (*state.state.values(), *state.timers.values())))):
                kept.pop(key, None)
        return committed

    with replaced(runner, "handle_result", handled):
        yield
