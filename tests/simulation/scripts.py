"""What happens to the jobs of a simulation: how they read, what fails, and where one is cut."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any
from unittest import mock

from hypothesis import strategies as st

from uldp.collector import reader
from uldp.transforms import count, remembered
from uldp.transforms.io import durable_files

#: A step of the pipeline and which call of it.
Call = tuple[str, int]
#: The function that is called, and about how often a batch calls it.
STEPS: dict[str, tuple[object, str, int]] = {
    "decode": (reader.ReportReader, "decode", 10),
    "deduplicate": (remembered, "pack_ids", 200),
    "count": (count, "count_support", 200),
    "write": (durable_files, "write_file", 600),
}


@dataclass(frozen=True)
class Script:
    """What happens to a job.

    Attributes:
        segment: Minutes of the stream that are read as one bundle.
        clocks: Of the job that is cut, and of the one that is not: whether the clock moves on after a segment, so that
            early panes fire; again from the first when used up.
        failures: These calls raise once; the runner does their bundles again. No more than three, because a fourth
            attempt of one bundle is the runner's last.
        cut: From this call on every call of its step raises, and the job dies. Another reads all from the beginning.
    """

    segment: int = 15
    clocks: tuple[tuple[bool, ...], tuple[bool, ...]] = ((False,), (False,))
    failures: frozenset[Call] = frozenset()
    cut: Call | None = None


def scripts() -> st.SearchStrategy[Script]:
    calls = st.one_of([st.tuples(st.just(step), st.integers(1, often)) for step, (_, _, often) in STEPS.items()])
    clock = st.lists(st.booleans(), min_size=1, max_size=5).map(tuple)
    return st.builds(
        Script,
        st.sampled_from([15, 30, 60]),
        st.tuples(clock, clock),
        st.frozensets(calls, max_size=3),
        st.none() | calls,
    )


class InjectedError(Exception):
    """A failure that the simulation injected."""


@contextmanager
def failing(failures: frozenset[Call], cut: Call | None = None) -> Iterator[None]:
    """Let calls of ``STEPS`` raise in the middle of their bundles, with a file written or state added to."""
    calls: Counter[str] = Counter()
    lock = Lock()  # files are written by several threads

    def wrap(step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            result = function(*arguments, **named)
            with lock:
                calls[step] += 1
                number = calls[step]
            if (step, number) in failures or (cut is not None and cut[0] == step and number >= cut[1]):
                raise InjectedError(f"{step} {number}")
            return result

        return call

    with ExitStack() as stack:
        for step, (owner, name, _) in STEPS.items():
            stack.enter_context(mock.patch.object(owner, name, wrap(step, getattr(owner, name))))
        yield
