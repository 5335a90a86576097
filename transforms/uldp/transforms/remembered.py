"""The ids that a shard remembers, in the bags of its state and in memory.

An entry of a bag is an expiry and ids that expire then. A shard fills one bag and then the next, because a runner may
write a bag anew when it grows: Flink keeps each bag as one value of RocksDB. When all ids of a bag have expired, the
shard clears the bag without reading it.
"""

import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from uldp.collector.remembered_ids import bag_to_fill, forget_at
from uldp.collector.seen import SeenIds
from uldp.schemas.arrays import ReportIds

#: Bags of a shard.
BAGS = 8


def pack_ids(expiry: int, ids: ReportIds) -> bytes:
    """Write ids that all expire at ``expiry`` (milliseconds) as one state entry."""
    return struct.pack("<q", expiry) + np.ascontiguousarray(ids).tobytes()


def unpack_ids(entry: bytes) -> tuple[int, ReportIds]:
    """Read back what ``pack_ids`` wrote."""
    return struct.unpack_from("<q", entry)[0], np.frombuffer(entry, np.uint64, -1, 8).reshape(-1, 2)


def unexpired(entries: Iterable[bytes], now: int) -> dict[int, ReportIds]:
    """Join the entries that expire after ``now``, by expiry."""
    left: dict[int, list[ReportIds]] = {}
    for entry in entries:
        expiry, ids = unpack_ids(entry)
        if expiry > now:
            left.setdefault(expiry, []).append(ids)
    return {expiry: np.concatenate(parts) for expiry, parts in sorted(left.items())}


def forget_expired(bag: Any, expiring: Counter[int], now: int) -> Counter[int]:
    """Free a bag of the ids that have expired, if these are a sixteenth of it; return the number of those left.

    Args:
        bag: The bag state.
        expiring: The number of its ids by expiry, in milliseconds.
        now: The time, in milliseconds.
    """
    expired = sum(ids for until, ids in expiring.items() if until <= now)
    if not expired or expired * 16 < expiring.total():
        return expiring
    left = unexpired(bag.read(), now) if expired < expiring.total() else {}
    bag.clear()
    for until, ids in left.items():
        bag.add(pack_ids(until, ids))
    return Counter({until: len(ids) for until, ids in left.items()})


class Remembered:
    """The ids of a shard in memory.

    Attributes:
        ids: The ids.
        expiring: The number of ids in state, by expiry.
    """

    def __init__(self) -> None:
        self.ids = SeenIds()
        self.expiring: Counter[int] = Counter()
        self._by_bag: list[Counter[int]] = [Counter() for _ in range(BAGS)]
        # In the order in which ids were added: the time at which the last id of a run expires, and the run's length.
        self._runs: list[tuple[int, int]] = []

    @classmethod
    def read(cls, bags: Iterable[Any]) -> Self:
        """Read the ids from bag states."""
        remembered, found = cls(), list[tuple[int, ReportIds]]()
        for number, bag in enumerate(bags):
            entries = list(map(unpack_ids, bag.read()))
            remembered._count(number, entries)
            found += entries
        # An id may have come again when it had expired, and was still in state. Then it expires with the later entry.
        for until, ids in sorted(found, key=lambda entry: -entry[0]):
            remembered._runs.append((until, int(np.count_nonzero(remembered.ids.add(ids)))))
        return remembered

    def write(self, bags: Sequence[Any], by_expiry: Iterable[tuple[int, ReportIds]]) -> None:
        """Write ids to state by expiry: those that were new to ``ids`` when they were last added there."""
        filled, entries = bag_to_fill([of_bag.total() for of_bag in self._by_bag]), list(by_expiry)
        for entry in entries:
            bags[filled].add(pack_ids(*entry))
        self._count(filled, entries)
        self._runs.append((max(until for until, _ in entries), sum(len(ids) for _, ids in entries)))

    def _count(self, bag: int, entries: Sequence[tuple[int, ReportIds]]) -> None:
        """Count ids in a bag."""
        for until, ids in entries:
            self.expiring[until] += len(ids)
            self._by_bag[bag][until] += len(ids)

    def forget_at(self) -> int:
        """Return the time at which to forget ids, in milliseconds; there must be some."""
        return forget_at(self.expiring)

    def forget(self, bags: Sequence[Any], now: int) -> None:
        """Free state and memory of ids that have expired: all but a sixteenth of those in state."""
        self._by_bag = [forget_expired(*of_bag, now) for of_bag in zip(bags, self._by_bag, strict=True)]
        self.expiring = sum(self._by_bag, Counter())
        until, lengths = np.array(self._runs, dtype=np.int64).reshape(-1, 2).T
        self.ids.keep(np.repeat(until > now, lengths))
        self._runs = [run for run in self._runs if run[0] > now]

    def is_tight(self) -> bool:
        """Return whether memory holds at most a sixteenth more ids than state: runs of mixed expiry may hold more."""
        return len(self.ids) * 16 <= self.expiring.total() * 17
