"""Groups of collections, whose time slices a bounded job sums in the same spans.

Each span passes a dozen steps of the job, and has a price in each of them. A thousand collections would have a
thousand spans of each hour, so collections that are counted alike share spans. Streams have ``window_keys``.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from uldp.collector.collections import BLOCK_CELLS, ServedCollection
from uldp.collector.partial import NUMBERS
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.arrays import Times
from uldp.schemas.specs.collection import CollectionKey

#: Collections that are counted alike are so many groups or more, for workers to share.
_FEWEST = 64
#: The slots of a collection in its group are this far from those of the next one. Starts are less than half as many
#: milliseconds from 1970, those of sliding windows before 1970 included.
_APART = 1 << 49


class Place(NamedTuple):
    """Where the slices of a collection are."""

    group: CollectionKey  # the name of the group: in a bounded job, its first collection
    offset: int  # A slice with this start plus ``offset`` as its slot in a span is one of the collection's


class Grouping(Protocol):
    """Which collections and which of their slices share spans."""

    def place(self, served: ServedCollection) -> Place:
        """Return the place of a collection."""

    def origins(self, served: ServedCollection, starts: Times) -> Times:
        """Return the start of the span that holds each slice."""


class Groups(Grouping):
    """The groups of all collections; the same in each process that serves the same specs in the same order.

    A group has collections with the same rules and protocol. If it has several, a span of it has up to as many numbers
    as a span of several slices may have cells. Sliding windows are cut from the slices of one collection, which is a
    group of its own.
    """

    def __init__(self, served: Mapping[CollectionKey, ServedCollection]) -> None:
        alike: defaultdict[tuple[str, LdpProtocol], list[ServedCollection]] = defaultdict(list)
        for each in served.values():
            alike[each.rules, each.protocol].append(each)
        self.places: dict[CollectionKey, Place] = {}
        self.members: dict[CollectionKey, Sequence[ServedCollection]] = {}  # by the first of each group
        for collections in alike.values():
            size = _group_size(collections[0], len(collections))
            for first in range(0, len(collections), size):
                group = collections[first].spec.key
                self.members[group] = collections[first : first + size]
                for number, each in enumerate(self.members[group]):
                    self.places[each.spec.key] = Place(group, number * _APART)

    def place(self, served: ServedCollection) -> Place:
        return self.places[served.spec.key]

    def origins(self, served: ServedCollection, starts: Times) -> Times:
        return served.span_start(starts)

    def find(self, group: CollectionKey, slot: int) -> tuple[ServedCollection, int]:
        """Return the collection that has a slot of a group, and the start of the slice."""
        number = (slot + _APART // 2) // _APART
        return self.members[group][number], slot - number * _APART


def _group_size(served: ServedCollection, alike: int) -> int:
    if served.spec.window.period is not None:
        return 1
    of_span = (served.mechanism.statistic_size + NUMBERS) * (served.span_size // served.slice_size)
    return max(1, min(alike // _FEWEST, BLOCK_CELLS // of_span))
