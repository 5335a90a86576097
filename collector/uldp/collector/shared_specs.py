"""The specs of a job as its steps hold them: one object in each process."""

import pickle
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import cached_property
from os import PathLike
from typing import cast
from weakref import WeakValueDictionary

from uldp.collector.collections import ServedCollection, serve
from uldp.collector.groups import Groups
from uldp.schemas.errors import RequestError
from uldp.schemas.pane import PaneHeader
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec, checked_spec


class SharedSpecs:
    """The specs of a job, which the steps of one process share.

    A runner pickles and unpickles each step on its own. With a thousand specs in each of its steps, a job spends more
    time on copies of specs than on reports. So the specs are pickled once, and all copies in one process are one
    object, which has built the protocols once. Errors are those of ``listed`` and of ``serve``.
    """

    edition = 0  # how often they have changed; only those of a folder do, see ``HotSpecs``
    wanted = False  # whether a report has come since the last change that names no collection and version of the specs
    refused: Set[CollectionKey] = frozenset()  # the collections whose spec has changed into one that is refused
    #: Collections by number, and the mapping that they are of.
    _numbers: tuple[Mapping[CollectionKey, ServedCollection], Mapping[int, ServedCollection]] = ({}, {})

    def __init__(self, specs: Iterable[CollectionSpec]) -> None:
        self._specs = listed(specs)
        self.served: Mapping[CollectionKey, ServedCollection] = serve(self._specs)

    @classmethod
    def of(cls, specs: "Iterable[CollectionSpec] | SharedSpecs") -> "SharedSpecs":
        """Return ``specs`` if they are shared already, and share them otherwise."""
        return specs if isinstance(specs, SharedSpecs) else cls(specs)

    def settle(self, published: int) -> None:
        """Make sure that this process knows which specs are open for messages until a publish time, in milliseconds."""

    def __iter__(self) -> Iterator[CollectionSpec]:
        return iter(self._specs)

    def of_key(self, key: CollectionKey) -> ServedCollection:
        """Return a collection of the job; RequestError if the job has none of that name and version."""
        if key not in self.served:
            raise unknown_collection(key)
        return self.served[key]

    def of_pane(self, pane: PaneHeader) -> CollectionSpec:
        """Return the spec that a pane was made under."""
        return self.served[pane.collection, pane.version].spec

    def of_number(self, number: int) -> ServedCollection:
        """Return the collection with a ``ServedCollection.number``; RequestError if there is none."""
        found = self._by_number().get(number)
        if found is None:
            raise RequestError("the state has counts of a collection that the job does not have; give its spec, too")
        return found

    def _by_number(self) -> Mapping[int, ServedCollection]:
        served, numbers = self._numbers
        if served is not self.served:
            served = self.served
            numbers = {each.number: each for each in served.values()}
            if len(numbers) < len(served):  # their counts would be one
                raise RequestError("two collections have the same number; rename one that has no counts yet")
            self._numbers = served, numbers
        return numbers

    @cached_property
    def groups(self) -> Groups:
        """The groups of the collections."""
        return Groups(self.served)

    @cached_property
    def _packed(self) -> bytes:
        packed = zlib.compress(pickle.dumps(self._specs, pickle.HIGHEST_PROTOCOL), 1)
        # In place of an earlier job's object: copies must find one that lives as long as this job.
        _SHARED[packed] = self
        return packed

    def __reduce__(self) -> tuple[Callable[..., "SharedSpecs"], tuple[object, ...]]:
        return _unpack, (self._packed,)


def unknown_collection(key: CollectionKey) -> RequestError:
    """Return the error for a report of no collection of the graph: it would vanish without an account."""
    return RequestError(f"the graph has no windows for collection {key[0]!r} version {key[1]}; start the job again")


def listed(specs: object) -> tuple[CollectionSpec, ...]:
    """Return the specs of a list; TypeError if it is no list, or anything in it is no spec."""
    if isinstance(specs, CollectionSpec):  # which is iterable, by its keys
        raise TypeError("specs is one spec, and not a list of them; write [spec]")
    if isinstance(specs, str | PathLike | Mapping) or not isinstance(specs, Iterable):
        checked_spec(specs)
    return tuple(map(checked_spec, cast(Iterable[object], specs)))


#: All that this process has pickled or unpickled, as long as a step needs it.
_SHARED: WeakValueDictionary[bytes, SharedSpecs] = WeakValueDictionary()


def _unpack(packed: bytes) -> SharedSpecs:
    # Beam unpickles the step that holds these bytes: they come from the job itself, and from nobody else.
    found = _SHARED.get(packed)
    if found is None:
        found = SharedSpecs(pickle.loads(zlib.decompress(packed)))  # noqa: S301
        found.__dict__["_packed"] = packed
        found = _SHARED.setdefault(packed, found)
    return found


class HotSpecs(SharedSpecs):
    """Specs that change while a job runs. Subclasses say where a process finds them.

    A collection keeps its windows and the half of its spec that devices know, see ``admission``, so a step may go on
    with what it has looked up, by the key of a report. It never goes through all collections. After each change,
    ``served`` is another mapping.
    """

    def __init__(self, specs: Iterable[CollectionSpec]) -> None:
        self.served: Mapping[CollectionKey, ServedCollection] = {}
        self.wanted = False
        self._changing = threading.Lock()
        self.change(specs)

    def __iter__(self) -> Iterator[CollectionSpec]:
        return iter([each.spec for each in self.served.values()])

    def change(self, specs: Iterable[CollectionSpec], refused: Set[CollectionKey] = frozenset()) -> None:
        """Take these specs in place of others of the same key, or beside; ``refused`` are known as such."""
        new = list(specs)
        with self._changing:
            if new:
                self.served = {**self.served, **serve(new)}
                self.edition += 1
            self.refused = refused
            self.wanted = False

    def __reduce__(self) -> tuple[Callable[..., SharedSpecs], tuple[object, ...]]:
        raise TypeError("a subclass says where another process finds the specs")
