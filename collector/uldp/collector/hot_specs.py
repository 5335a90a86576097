"""The specs of a job that reads them from a folder while it runs, as its steps hold them: one object in each process.

A collection keeps its windows and the half of its spec that devices know, see ``admission``, so a step may go on with
what it has looked up. A step looks up a collection of each report by its key, and never goes through all of them to
find those that it has state of.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Set

from uldp.collector.collections import ServedCollection, serve
from uldp.collector.groups import Groups, Place
from uldp.collector.shared_specs import SharedSpecs, unknown_collection
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec


class HotSpecs(SharedSpecs):
    """Specs that change while a job runs. Subclasses say where a process finds them.

    Attributes:
        served: As in ``SharedSpecs``; another mapping after each change. It finds a collection that another process
            counts already.
        wanted: Whether a report has come of an unknown collection or version since the last change.
    """

    def __init__(self, specs: Iterable[CollectionSpec]) -> None:
        self.served = _Served(self, {})
        self.__dict__["groups"] = _Alone(self)  # in place of those that the class would make once
        self.wanted = False
        self._changing = threading.Lock()
        self._refusals = 0
        self.change(specs)

    def __iter__(self) -> Iterator[CollectionSpec]:
        return iter([each.spec for each in self.served.values()])

    def of_key(self, key: CollectionKey) -> ServedCollection:
        """Return a collection of the job; see ``SharedSpecs.of_key``."""
        return self.served[key]

    def of_number(self, number: int) -> ServedCollection:
        """Return a collection of the job; see ``SharedSpecs.of_number``."""
        self.learn(lambda: number in self._by_number())
        return super().of_number(number)

    def find(self, key: CollectionKey) -> ServedCollection:
        """Return a collection that this process does not know; others may count it already.

        Raises:
            RequestError: if there is none.
        """
        self.learn(lambda: key in self.served)
        if key not in self.served:
            raise unknown_collection(key)
        return self.served[key]

    def learn(self, known: Callable[[], bool]) -> None:
        """Look up the specs by which other processes count, if ``known`` returns false."""

    def change(self, specs: Iterable[CollectionSpec], refused: Set[CollectionKey] = frozenset()) -> None:
        """Take these specs in the place of those of the same collection and version, or beside the others.

        Args:
            specs: The specs.
            refused: The collections whose newest spec is refused.
        """
        new = list(specs)
        with self._changing:
            if new:
                self.served = _Served(self, {**self.served, **serve(new)})
                self.edition += 1
            self.refused = refused
            self.wanted = False

    def refuse(self, files: int) -> None:
        """Note that so many files were refused."""
        self._refusals += files

    def take_refusals(self) -> int:
        """Return how many files were refused since the last call."""
        refusals, self._refusals = self._refusals, 0
        return refusals

    def __reduce__(self) -> tuple[Callable[..., SharedSpecs], tuple[object, ...]]:
        raise TypeError("a subclass says where another process finds the specs")


class _Served(dict[CollectionKey, ServedCollection]):
    """Collections by key, which finds those that another process knows already."""

    def __init__(self, specs: HotSpecs, served: Mapping[CollectionKey, ServedCollection]) -> None:
        super().__init__(served)
        self._specs = specs

    def __missing__(self, key: CollectionKey) -> ServedCollection:
        return self._specs.find(key)


class _Places(dict[CollectionKey, Place]):
    def __missing__(self, key: CollectionKey) -> Place:
        return Place(key, 0)


class _Alone(Groups):
    """Each collection as a group of its own, so that another collection changes no group."""

    def __init__(self, specs: HotSpecs) -> None:
        self.places = _Places()
        self._specs = specs

    def find(self, group: CollectionKey, slot: int) -> tuple[ServedCollection, int]:
        """Return the collection that is the group, and the start of the slice."""
        return self._specs.of_key(group), slot
