"""Keeps Beam from reading the same code for each bundle: a runner on this machine asks each step whether it has state.

Beam answers by the signature of each method of the step's ``DoFn``, and ``BundleBasedDirectRunner`` asks several times
a bundle. That is half of what a bundle of few reports costs (``benchmarks.restart``).
"""

from collections.abc import Iterator
from contextlib import contextmanager

from apache_beam import DoFn
from apache_beam.transforms import userstate

from uldp.transforms.internals import AbstractDoFnWrapper

#: The cells of state and the timers that a DoFn declares.
Specs = tuple[set[userstate.StateSpec], set[userstate.TimerSpec]]


@contextmanager
def remembered_specs() -> Iterator[None]:
    """While the context lasts, Beam reads once what state and timers a class of ``DoFn`` declares.

    A wrapper has what the ``DoFn`` in it has, which is not in its class, and is read each time.
    """
    read, known = userstate.get_dofn_specs, dict[type[DoFn], Specs]()

    def remember(dofn: DoFn) -> Specs:
        if isinstance(dofn, AbstractDoFnWrapper):
            return read(dofn)
        if type(dofn) not in known:
            known[type(dofn)] = read(dofn)
        states, timers = known[type(dofn)]
        return set(states), set(timers)

    userstate.get_dofn_specs = remember
    try:
        yield
    finally:
        userstate.get_dofn_specs = read
