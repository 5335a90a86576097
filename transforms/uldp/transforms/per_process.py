"""Values that a process holds for a step, however often a runner copies the step.

Beam's local runner copies a step for each bundle, and so would derive everything from the specs anew for each.
"""

import uuid
from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class PerProcess(Generic[T]):
    """A value that a process makes once for a step, when the step asks for it first.

    Pickling writes only how to make the value. A copy in the same process as the original is the original itself; in
    another process, all copies are one. The process holds the value as long as any copy of the step.

    Threads of a process share the value, so it must not change, or bear that several threads change it.
    """

    def __init__(self, make: Callable[[], T], name: str | None = None) -> None:
        self._make = make
        self._name = name or uuid.uuid4().hex
        _OF_PROCESS[self._name] = self

    @cached_property
    def value(self) -> T:
        """The value."""
        return self._make()

    def __reduce__(self) -> tuple[Callable[[Callable[[], T], str], "PerProcess[T]"], tuple[Callable[[], T], str]]:
        return _copied, (self._make, self._name)


_OF_PROCESS: "WeakValueDictionary[str, PerProcess[Any]]" = WeakValueDictionary()


def _copied(make: Callable[[], T], name: str) -> PerProcess[T]:
    found = _OF_PROCESS.get(name)
    return PerProcess(make, name) if found is None else found
