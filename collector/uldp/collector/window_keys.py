"""The keys under which a stream keeps its windows, and the slots of collections in them.

The runner calls the step that fires windows once for each key and bundle, and has a timer for each key. A thousand
collections would be a thousand keys of each hour. So fixed windows of one time and length share keys, and a collection
is a slot in them. Sliding windows share slices, and so all of them that a collection has are one key.

Keys and slots are state. They follow from what never changes in the spec of a collection, from no other collection, and
from the number of shards.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from uldp.collector.collections import BLOCK_CELLS, ServedCollection
from uldp.collector.groups import Place
from uldp.schemas.arrays import Times

#: Slices of more cells than this are in more shards, so that the state of a key does not grow with the cells.
_CELLS_OF_A_SHARD = 64


class WindowTimes(NamedTuple):
    """The times of windows that may share keys, in milliseconds."""

    size: int  # the length of a window
    period: int  # the time between two windows; 0 if they are fixed
    offset: int  # see ``ServedCollection.offset``


class WindowKeys(NamedTuple):
    """The keys of a stream, ``shards`` for one time and length; a span is a window of many, or slices of one."""

    shards: int

    def place(self, served: ServedCollection) -> Place:
        """Return the place of a collection.

        If its windows are fixed, they share keys with those of others, and their slot is the start and the number of
        the collection. If they slide, its number is in the key, and slots are the starts of slices.
        """
        number = served.number
        if served.spec.window.period is not None:
            return Place((served.alike, number), 0)
        if served.slice_cells > BLOCK_CELLS:
            return Place((served.alike, number), number)
        return Place((served.alike, number % (self.shards * -(-served.slice_cells // _CELLS_OF_A_SHARD))), number)

    def origins(self, served: ServedCollection, starts: Times) -> Times:
        """Return the start of the window if it is fixed, and 0 for all that slide."""
        return starts if served.spec.window.period is None else np.zeros_like(starts)


@lru_cache(maxsize=1 << 10)
def times_of(group: str) -> WindowTimes:
    """Return the times of the windows of a key's group, which ``ServedCollection.alike`` names."""
    return WindowTimes(*map(int, group.split()[:3]))
