"""The specs of a job that reads them from a folder while it runs, as its steps hold them: one object in each process.

A collection keeps its windows and the half of its spec that devices know, see ``admission``, so a step may go on with
what it has looked up. A step looks up a collection of each report by its key, and never goes through all of them to
find those that it has state of.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Set

from uldp.collector.collections import ServedCollection, serve
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec


class HotSpecs(SharedSpecs):
    """Specs that change while a job runs. Subclasses say where a process finds them.

    Attributes:
        served: As in ``SharedSpecs``; another mapping after each change.
        wanted: Whether a report has come of an unknown collection or version since the last change.
    """

    def __init__(self, specs: Iterable[CollectionSpec]) -> None:
        self.served: Mapping[CollectionKey, ServedCollection] = {}
        self.wanted = False
        self._changing = threading.Lock()
        self.change(specs)

    def __iter__(self) -> Iterator[CollectionSpec]:
        return iter([each.spec for each in self.served.values()])

    def change(self, specs: Iterable[CollectionSpec], refused: Set[CollectionKey] = frozenset()) -> None:
        """Take these specs in the place of those of the same collection and version, or beside the others.

        Args:
            refused: The collections whose newest spec is refused.
        """
        new = list(specs)
        with self._changing:
            if new:
                self.served = {**self.served, **serve(new)}
                self.edition += 1
            self.refused = refused
            self.wanted = False

    def __reduce__(self) -> tuple[Callable[..., SharedSpecs], tuple[object, ...]]:
        raise TypeError("a subclass says where another process finds the specs")
