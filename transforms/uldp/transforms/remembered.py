"""The ids that a shard remembers, in the bags of its state and in memory.

An entry of a bag is the time of an expiry, and hashes of ids that expire then. A shard fills one bag and then the next,
because a runner may write a bag anew when it grows: Flink keeps each bag as one value of RocksDB. When all ids of a bag
have expired, the shard clears the bag without reading it.
"""

import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from uldp.collector.id_table import Hashes
from uldp.collector.seen import Lot, SeenIds, bag_to_fill

#: Bags of a shard.
BAGS = 8
#: Of an entry: when its ids expire, in milliseconds, and whether it has all bits of them.
_HEAD = struct.Struct("<q?")


def pack_ids(lot: Lot, hashes: Hashes) -> bytes:
    """Write the hashes of a lot as one state entry: 8 bytes each, or 16 if they are exact."""
    return _HEAD.pack(*lot) + b"".join(words.tobytes() for words in hashes)


def unpack_ids(entry: bytes) -> tuple[Lot, Hashes]:
    """Read back what ``pack_ids`` wrote."""
    lot = Lot(*_HEAD.unpack_from(entry))
    return lot, list(np.frombuffer(entry, np.uint64, -1, _HEAD.size).reshape(lot.columns, -1))


def unexpired(entries: Iterable[bytes], now: int) -> dict[Lot, Hashes]:
    """Join the entries that expire after ``now``, by lot."""
    left: dict[Lot, list[Hashes]] = {}
    for lot, hashes in map(unpack_ids, entries):
        if lot.until > now:
            left.setdefault(lot, []).append(hashes)
    return {lot: list(map(np.concatenate, zip(*parts, strict=True))) for lot, parts in sorted(left.items())}


def forget_expired(bag: Any, expiring: Counter[int], now: int) -> Counter[int]:
    """Free a bag of ids that have expired, in milliseconds, if they are a sixteenth of it; return how many are left."""
    expired = sum(ids for until, ids in expiring.items() if until <= now)
    if not expired or expired * 16 < expiring.total():
        return expiring
    left = unexpired(bag.read(), now) if expired < expiring.total() else {}
    bag.clear()
    for lot, hashes in left.items():
        bag.add(pack_ids(lot, hashes))
    return _sizes(left.items())


def _sizes(entries: Iterable[tuple[Lot, Hashes]]) -> Counter[int]:
    """Count ids by expiry."""
    sizes = Counter[int]()
    for lot, hashes in entries:
        sizes[lot.until] += len(hashes[0])
    return sizes


class Remembered:
    """The ids of a shard in memory."""

    def __init__(self, secret: bytes) -> None:
        self.secret = secret  # the 16 secret bytes of the hashes
        self.ids = SeenIds(secret)
        self.expiring: Counter[int] = Counter()  # the number of ids in state, by expiry
        self._by_bag: list[Counter[int]] = [Counter() for _ in range(BAGS)]

    @classmethod
    def read(cls, secret: bytes, bags: Iterable[Any]) -> Self:
        """Read the ids from bag states."""
        remembered, found = cls(secret), list[tuple[Lot, Hashes]]()
        for number, bag in enumerate(bags):
            entries = list(map(unpack_ids, bag.read()))
            remembered._count(number, entries)
            found += entries
        # An id may have come again when it had expired, and was still in state. Then it expires with the later entry.
        for lot, hashes in sorted(found, key=lambda entry: -entry[0].until):
            remembered.ids.restore(lot, hashes)
        return remembered

    def write(self, bags: Sequence[Any], entries: Sequence[tuple[Lot, Hashes]]) -> None:
        """Write ids to state, which ``ids`` has added."""
        filled = bag_to_fill([of_bag.total() for of_bag in self._by_bag])
        by_lot: dict[Lot, list[Hashes]] = {}
        for lot, hashes in entries:
            by_lot.setdefault(lot, []).append(hashes)
        joined = {lot: list(map(np.concatenate, zip(*parts, strict=True))) for lot, parts in by_lot.items()}
        for lot, hashes in joined.items():
            bags[filled].add(pack_ids(lot, hashes))
        self._count(filled, joined.items())

    def _count(self, bag: int, entries: Iterable[tuple[Lot, Hashes]]) -> None:
        sizes = _sizes(entries)
        self.expiring += sizes
        self._by_bag[bag] += sizes

    def forget(self, bags: Sequence[Any], now: int) -> None:
        """Free state of ids that have expired, all but a sixteenth of those in state, and memory of all of them."""
        self._by_bag = [forget_expired(*of_bag, now) for of_bag in zip(bags, self._by_bag, strict=True)]
        self.expiring = sum(self._by_bag, Counter())
        self.ids.forget(now)
