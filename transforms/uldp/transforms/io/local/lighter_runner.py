"""Replaces parts of Beam's local runner by ones that cost less, for as long as a context lasts.

``BundleBasedDirectRunner`` does much for each bundle that the jobs of this project do not need. Each function of this
module says what, and what holds instead. ``python -m benchmarks.sliding`` runs without each: with
ten collections whose windows slide, a bundle takes 1.5 times as long without ``full_bundles``, and 3 times without
``remembered_specs``; without one of the others, the difference is within the noise of that benchmark.
"""

import copy
import math
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple

from apache_beam import DoFn
from apache_beam.transforms import core, userstate
from apache_beam.transforms.timeutil import TimeDomain

from uldp.transforms.internals import AbstractDoFnWrapper
from uldp.transforms.io.local.runner_internals import (
    DirectUnmergedState,
    EvaluationContext,
    TransformWatermarks,
    transform_evaluator,
)


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
    whole = DirectUnmergedState.copy

    def copied(this: Any) -> Any:
        if this.global_state:  # of a trigger, which no step here has
            return whole(this)  # type: ignore[no-untyped-call]
        clone = DirectUnmergedState()
        clone.timers.update((window, dict(timers)) for window, timers in this.timers.items())
        for window, values in this.state.items():
            clone.state[window].update((tag, list(entries)) for tag, entries in values.items())
        return clone

    with replaced(DirectUnmergedState, "copy", copied):
        yield


@contextmanager
def copied_steps() -> Iterator[None]:
    """Copy a step by its attributes, where the runner pickles it for each bundle, which takes half a millisecond.

    What a ``DoFn`` changes, it must make in ``setup`` or ``start_bundle``: its copies share what it was made with.
    """
    with replaced(transform_evaluator, "pickler", SimpleNamespace(roundtrip=copy.copy)):
        yield


@contextmanager
def full_bundles() -> Iterator[None]:
    """Hand on bundles that have elements alone: the others change nothing, and are what an idle stream costs."""
    handle = EvaluationContext.handle_result

    def handled(context: Any, bundle: Any, timers: Any, result: Any) -> Any:
        return [each for each in handle(context, bundle, timers, result) if each.has_elements()]

    with replaced(EvaluationContext, "handle_result", handled):
        yield


@contextmanager
def small_state() -> Iterator[None]:
    """Forget keys without state and timers, one for each window: the runner looks through all for each bundle."""
    handle = EvaluationContext.handle_result

    def handled(context: Any, bundle: Any, timers: Any, result: Any) -> Any:
        committed = handle(context, bundle, timers, result)
        kept = context._transform_keyed_states[result.transform]
        for key, state in result.partial_keyed_state.items():
            if not any(map(any, map(dict.values, (*state.state.values(), *state.timers.values())))):
                kept.pop(key, None)
        return committed

    with replaced(EvaluationContext, "handle_result", handled):
        yield


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
    """The timers of a step, the first of which is due at ``first``, and the states of its keys in the runner."""

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
    """Make the local runner know when the next timer of a step is due, which only its bundles change.

    It asks each key of each step for the timers that are due, after each bundle and at each event of the clock. With
    the early panes of 1,000 collections, these are 1,000 keys, and most of what the job costs.

    A timer by the watermark fires with the time of the watermark, which may have passed many ends of windows: all of
    them fire in one bundle then, where each would set the timer of the next.
    """
    handle, extract = EvaluationContext.handle_result, TransformWatermarks.extract_transform_timers
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
            return extract(step)
        first = timers.first
        if first.watermark <= step.input_watermark.micros / 1e6 + _NEAR or first.clock <= step._clock.time() + _NEAR:
            fired, has_clock = extract(step)
            for timer in fired:
                if timer.time_domain == TimeDomain.WATERMARK:
                    timer.timestamp = step.input_watermark
            return fired, has_clock
        return [], first.clock < math.inf

    with (
        replaced(EvaluationContext, "handle_result", handled),
        replaced(TransformWatermarks, "extract_transform_timers", extracted),
    ):
        yield


#: The cells of state and the timers that a DoFn declares.
Specs = tuple[set[userstate.StateSpec], set[userstate.TimerSpec]]
#: The names of the arguments of a method, and the defaults of the last of them.
Arguments = tuple[list[str], list[Any]]


@contextmanager
def remembered_specs() -> Iterator[None]:
    """Make Beam read once what state, timers and arguments a ``DoFn`` or a function declares; a wrapper's each time.

    The runner asks several times a bundle, and Beam answers by the signature of each method. That is more than half of
    what a bundle of few reports costs (``benchmarks.restart``).
    """
    read, known = userstate.get_dofn_specs, dict[type[DoFn], Specs]()
    read_arguments, arguments = core.get_function_arguments, dict[tuple[type[DoFn], Any, str], Arguments]()

    def remember(dofn: DoFn) -> Specs:
        if isinstance(dofn, AbstractDoFnWrapper):
            return read(dofn)
        if type(dofn) not in known:
            known[type(dofn)] = read(dofn)
        states, timers = known[type(dofn)]
        return set(states), set(timers)

    def remember_arguments(obj: Any, func: str) -> Arguments:
        plain = isinstance(obj, DoFn) and not isinstance(obj, AbstractDoFnWrapper)
        # Of ``beam.Map``, whose ``process`` takes what the function does.
        function = obj._fn if isinstance(obj, core.CallableWrapperDoFn) else None
        if not plain or not isinstance(function, Hashable) or (function is None and hasattr(obj, f"_inspect_{func}")):
            return read_arguments(obj, func)
        of = type(obj), function, func
        if of not in arguments:
            arguments[of] = read_arguments(obj, func)
        names, defaults = arguments[of]
        return list(names), list(defaults)

    with replaced(userstate, "get_dofn_specs", remember), replaced(core, "get_function_arguments", remember_arguments):
        yield
