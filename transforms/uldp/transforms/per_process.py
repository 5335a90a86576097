"""Values that a process holds for a step, because Beam's local runner copies the step for each bundle."""

import uuid
from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class PerProcess(Generic[T]):
    """A value that a process makes once for a step, when the step asks for it first.

    Pickling writes how to make the value, and all copies in a process are one, which its threads share: it must not
    change, or bear that.
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


class Itself:
    """An object that, pickled, is the same object again in this process, as long as anything else holds it."""

    def __reduce__(self) -> tuple[Callable[[int], Any], tuple[int]]:
        _ITSELF[id(self)] = self
        return _itself, (id(self),)


_ITSELF: WeakValueDictionary[int, Itself] = WeakValueDictionary()


def _itself(number: int) -> Itself:
    return _ITSELF[number]


def _copied(make: Callable[[], T], name: str) -> PerProcess[T]:
    found = _OF_PROCESS.get(name)
    return PerProcess(make, name) if found is None else found
