"""Keeps Beam from reading the same code for each bundle: a runner on this machine asks each step what it declares.

Beam answers by the signature of each method of the step's ``DoFn``, and ``BundleBasedDirectRunner`` asks several times
a bundle whether the step has state, and what its methods take. That is more than half of what a bundle of few reports
costs (``benchmarks.restart``).
"""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from apache_beam import DoFn
from apache_beam.transforms import core, userstate

from uldp.transforms.internals import AbstractDoFnWrapper
from uldp.transforms.io.local.lighter_runner import replaced

#: The cells of state and the timers that a DoFn declares.
Specs = tuple[set[userstate.StateSpec], set[userstate.TimerSpec]]
#: The names of the arguments of a method, and the defaults of the last of them.
Arguments = tuple[list[str], list[Any]]


@contextmanager
def remembered_specs() -> Iterator[None]:
    """Make Beam read once what state, timers and arguments a ``DoFn`` or a function declares; a wrapper's each time."""
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

    with (
        replaced(userstate, "get_dofn_specs", remember),
        replaced(core, "get_function_arguments", remember_arguments),
    ):
        yield
