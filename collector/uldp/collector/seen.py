"""An exact set of the 128-bit report ids that a stage has seen; the stage adds columns of ids.

The set is a hash table with chains, stored in NumPy arrays. Each step handles thousands of ids at once, so the number
of NumPy calls grows with the longest chain and not with the number of ids.
"""

import functools
import secrets

import numpy as np
import numpy.typing as npt

from uldp.collector.hashing import KEY_BYTES, hash_ids
from uldp.schemas.arrays import Mask, ReportIds, Rows, Words

#: Rows of stored ids, counted from 1; 0 means no row.
Links = npt.NDArray[np.uint32]

#: Slots of an empty set. The number is small because a job holds thousands of sets.
_MIN_SLOTS = 16
#: A full table grows by this factor. It is then at least a quarter full, so its slots take 4 to 16 bytes per id.
_GROWTH = 4
#: Number of ids added at once. The intermediate arrays for a block of this size stay in the processor's cache.
_BLOCK = 8192


@functools.cache
def _secret() -> Words:
    """Draw a summand and four factors once per process, so that no device can aim ids at one slot.

    Neither these numbers nor any value that depends on them leaves the process.
    """
    return np.frombuffer(secrets.token_bytes(KEY_BYTES), np.uint64)


def _hashes(low: Words, high: Words) -> Words:
    """Hash ids, given as their two words, with the key of this process."""
    return hash_ids(_secret(), low, high)


def _slots_for(count: int, slots: int) -> int:
    """Return the number of slots of a table that grew from ``slots`` until it has at least ``count``."""
    while slots < count:
        slots *= _GROWTH
    return slots


class SeenIds:
    """A set of report ids.

    The set stores ids in rows, counted from 1. Each slot of the table holds the newest row of that slot, and each row
    holds the next older row of its slot. These links form a chain that ends with 0.

    The table has at least as many slots as ids, and the hash of an id selects its slot. On average over the factors,
    an id therefore shares its slot with less than one other id, and the longest of n chains is O(sqrt(n)), for any
    choice of ids by the devices; for random ids it is about ten. Rows take 20 to 25 bytes per id and slots 4 to 16,
    with room for at most the next 8192 ids. A set holds less than 2^32 ids.
    """

    def __init__(self) -> None:
        self._count = 0
        self._heads: Links = np.zeros(_MIN_SLOTS, dtype=np.uint32)
        self._before: Links = np.zeros(1, dtype=np.uint32)
        self._low: Words = np.zeros(1, dtype=np.uint64)
        self._high: Words = np.zeros(1, dtype=np.uint64)

    def __len__(self) -> int:
        return self._count

    def add(self, ids: ReportIds) -> Mask:
        """Add ids of shape (n, 2).

        Returns:
            Shape (n,): which ids were new. Of several copies of a new id, only the first counts as new.
        """
        new = np.ones(len(ids), dtype=np.bool_)
        for start in range(0, len(ids), _BLOCK):
            block = ids[start : start + _BLOCK]
            self._add(block[:, 0].copy(), block[:, 1].copy(), new[start : start + _BLOCK])
        return new

    def keep(self, staying: Mask) -> None:
        """Forget all other ids, in place: a second set beside this one would leave holes in memory.

        Args:
            staying: Shape (len(self),): which ids stay, in the order in which they were added.
        """
        rows = np.flatnonzero(staying) + 1
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK]
            self._count = start  # rows move towards the front, so none is overwritten before it has moved
            self._store(self._low.take(block), self._high.take(block))
        self._count = len(rows)
        self._resize(len(rows) + 1)
        self._rehash(_slots_for(len(rows), _MIN_SLOTS))

    def _add(self, low: Words, high: Words, new: Mask) -> None:
        """Add one block of ids, and clear ``new`` for each id that the set or an earlier row of the block holds."""
        self._reserve(self._count + len(low))
        slots = self._slots(low, high)
        heads = self._heads.take(slots)
        new[self._find(heads, low, high)] = False
        while True:
            chosen = np.flatnonzero(new)
            self._store(low.take(chosen), high.take(chosen))
            copies, originals = self._link(self._count + 1, slots.take(chosen))
            if not len(copies):
                break
            # Copies within the block are rare, but stored copies would waste rows. So undo the links, drop the copies,
            # and link the other ids again.
            self._heads[slots] = heads
            firsts = np.arange(len(chosen))
            np.minimum.at(firsts, originals, copies)
            new[chosen.take(originals)] = new[chosen.take(copies)] = False
            new[chosen.take(firsts.take(originals))] = True
        self._count += len(chosen)

    def _slots(self, low: Words, high: Words) -> Rows:
        """Return the slot of each id: as many upper bits of its hash as the table needs to number its slots."""
        hashes = _hashes(low, high)
        hashes >>= np.uint64(65 - len(self._heads).bit_length())
        return hashes.view(np.int64)

    def _find(self, heads: Links, low: Words, high: Words) -> Rows:
        """Return the positions of the ids that the set holds in the chains that begin with ``heads``."""
        positions = np.flatnonzero(heads != 0)
        rows = heads.take(positions)
        places, candidates = [positions], [rows]
        while len(rows):
            rows = self._before.take(rows)
            more = np.flatnonzero(rows != 0)
            positions, rows = positions.take(more), rows.take(more)
            places.append(positions)
            candidates.append(rows)
        positions, rows = np.concatenate(places), np.concatenate(candidates)
        # Few different ids have equal low words, so comparing low words first saves most look-ups of high words.
        same = np.flatnonzero(self._low.take(rows) == low.take(positions))
        positions, rows = positions.take(same), rows.take(same)
        return positions.compress(self._high.take(rows) == high.take(positions))

    def _link(self, start: int, slots: Rows) -> tuple[Rows, Rows]:
        """Put the rows from ``start`` on, which copy no earlier row, at the heads of the chains of their slots.

        If several rows share a slot, each round leaves one of them at the head; NumPy does not promise which one. The
        next rounds link the other rows, except copies of this row.

        Returns:
            The copies, and for each copy the linked row that it equals; both counted from ``start``.
        """
        rows = np.arange(start, start + len(slots), dtype=np.uint32)
        self._before[start : start + len(slots)] = self._heads.take(slots)
        copies, originals = rows[:0], rows[:0]
        while True:
            self._heads[slots] = rows
            winners = self._heads.take(slots)
            lost = np.flatnonzero(winners != rows)
            if not len(lost):
                return (copies - start).astype(np.intp), (originals - start).astype(np.intp)
            rows, winners, slots = rows.take(lost), winners.take(lost), slots.take(lost)
            same = self._low.take(rows) == self._low.take(winners)
            same &= self._high.take(rows) == self._high.take(winners)
            if same.any():
                copies = np.concatenate([copies, rows.compress(same)])
                originals = np.concatenate([originals, winners.compress(same)])
                rows, winners, slots = rows.compress(~same), winners.compress(~same), slots.compress(~same)
            self._before[rows] = winners

    def _store(self, low: Words, high: Words) -> None:
        """Write ids to the next rows."""
        start = self._count + 1
        stop = start + len(low)
        if stop > len(self._low):
            self._resize(max(stop, len(self._low) * 5 // 4))
        self._low[start:stop] = low
        self._high[start:stop] = high

    def _resize(self, rows: int) -> None:
        """Make room for so many rows, with row 0."""
        # In place: the system moves pages of large columns without a copy. No view of a column outlives a call.
        for column in (self._low, self._high, self._before):
            column.resize(rows, refcheck=False)

    def _reserve(self, count: int) -> None:
        """Grow the table until it has at least ``count`` slots."""
        if count > len(self._heads):
            self._rehash(_slots_for(count, len(self._heads)))

    def _rehash(self, slots: int) -> None:
        """Link all rows anew in a table of so many slots."""
        self._heads = np.zeros(slots, dtype=np.uint32)
        for start in range(1, self._count + 1, _BLOCK):
            stop = min(start + _BLOCK, self._count + 1)
            self._link(start, self._slots(self._low[start:stop], self._high[start:stop]))
