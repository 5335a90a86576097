"""A hash table of the hashes of report ids, with chains, in NumPy arrays; it takes no pause to grow.

Each step handles thousands of hashes at once, so the number of NumPy calls grows with the longest chain and not with
the number of hashes.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from uldp.schemas.arrays import Mask, Rows, Words

#: Columns of hashes, shape (n,) each: one or two words a hash. The first word alone chooses the slot.
Hashes = Sequence[Words]
#: Rows of stored hashes, counted from 1; 0 means no row.
Links = npt.NDArray[np.uint32]

#: Slots of an empty table. The number is small because a job holds thousands of tables.
_MIN_SLOTS = 16
#: Hashes a slot at which a table gets twice as many slots. With this one, and as little room for more rows, a hash of
#: one word takes less than 20 bytes also while the table grows: 12 * 65 / 64 + 12 / 1.54.
_FULL = 1.54
#: Number of hashes to handle at once. The intermediate arrays for a block of this size stay in the processor's cache.
BLOCK = 8192
#: Slots of a growing table that are written with zeros with each block that is added: a MiB takes two milliseconds.
_CLEARED = 1 << 18
#: Blocks of rows that a growing table links anew with each block that is added: they take some milliseconds.
_PACE = 16


class IdTable:
    """A set of hashes of one or two words, the first of them uniform.

    The table stores hashes in rows, counted from 1. Each slot holds the newest row of that slot, and each row holds the
    next older row of its slot. These links form a chain that ends with 0. The upper bits of a hash select its slot.

    A table that is full gets twice as many slots beside the others. The next additions write zeros to these, some at a
    time, and then move the rows there, the oldest first. As the rows of a chain descend, those that have not moved are
    at its head. Behind them, the chain leads into one of the others, and ends there.

    A row takes 12 bytes with one word and 20 with two, and room for a 64th more; slots take 2.6 to 5.2 bytes a hash,
    and another 2.6 while the table grows. A table holds less than 2^32 hashes.
    """

    def __init__(self, columns: int) -> None:
        self._count = 0
        self._heads: Links = np.zeros(_MIN_SLOTS, dtype=np.uint32)
        #: The slots of a table that grows, else none; how many of them are zeros; the last row that has moved there.
        self._next: Links = self._heads[:0].copy()
        self._cleared = self._moved = 0
        self._before: Links = np.zeros(1, dtype=np.uint32)
        self._columns: list[Words] = [np.zeros(1, dtype=np.uint64) for _ in range(columns)]

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Size of the arrays."""
        words: int = sum(column.nbytes for column in self._columns)
        return words + self._heads.nbytes + self._next.nbytes + self._before.nbytes

    def find(self, hashes: Hashes) -> Mask:
        """Return which hashes the table holds, shape (n,); it compares no more words than it has of each hash."""
        heads = self._heads.take(_slots(hashes[0], self._heads))
        positions = np.flatnonzero(heads > self._moved)
        rows = heads.take(positions)
        if self._moved:
            heads = self._next.take(_slots(hashes[0], self._next))
            moved = np.flatnonzero(heads != 0)
            positions, rows = np.concatenate([positions, moved]), np.concatenate([rows, heads.take(moved)])
        places, candidates = [positions], [rows]
        while len(rows):
            rows = self._before.take(rows)
            more = np.flatnonzero(rows != 0)
            positions, rows = positions.take(more), rows.take(more)
            places.append(positions)
            candidates.append(rows)
        positions, rows = np.concatenate(places), np.concatenate(candidates)
        # Few different hashes have equal first words, so comparing these first saves most look-ups of second words.
        for column, words in zip(self._columns, hashes, strict=False):
            same = np.flatnonzero(column.take(rows) == words.take(positions))
            positions, rows = positions.take(same), rows.take(same)
        held = np.zeros(len(heads), dtype=np.bool_)
        held[positions] = True
        return held

    def insert(self, hashes: Hashes) -> Mask:
        """Add up to ``BLOCK`` hashes that are not there; return which were new, (n,): the first of copies."""
        new = np.ones(len(hashes[0]), dtype=np.bool_)
        self._grow(self._count + len(new))
        slots = _slots(hashes[0], self._heads)
        heads = self._heads.take(slots)
        while True:
            chosen = np.flatnonzero(new)
            self._store([words.take(chosen) for words in hashes])
            copies = self._link(self._heads, self._count + 1, slots.take(chosen))
            if not len(copies):
                break
            # Copies within the block are rare, but stored copies would waste rows. So undo the links, drop the copies,
            # and link the other hashes again.
            self._heads[slots] = heads
            new[chosen.take(copies)] = False
        self._count += len(chosen)
        return new

    def columns(self) -> list[Words]:
        """Return the words of all hashes, as views that are gone when the table changes."""
        return [column[1 : self._count + 1] for column in self._columns]

    def _link(self, heads: Links, start: int, slots: Rows) -> Rows:
        """Put the rows from ``start`` on, which copy no row that is linked, at the heads of the chains of their slots.

        If several rows share a slot, each round leaves the oldest of them at the head: NumPy assigns in order, and what
        it assigns last stays. The next rounds link the others, except copies of this row. Return the copies, counted
        from ``start``.
        """
        rows = np.arange(start, start + len(slots), dtype=np.uint32)
        self._before[start : start + len(slots)] = heads.take(slots)
        copies = rows[:0]
        while True:
            heads[slots[::-1]] = rows[::-1]
            winners = heads.take(slots)
            lost = np.flatnonzero(winners != rows)
            if not len(lost):
                return (copies - start).astype(np.intp)
            rows, winners, slots = rows.take(lost), winners.take(lost), slots.take(lost)
            same = np.ones(len(rows), dtype=np.bool_)
            for column in self._columns:
                same &= column.take(rows) == column.take(winners)
            if same.any():
                copies = np.concatenate([copies, rows.compress(same)])
                rows, winners, slots = rows.compress(~same), winners.compress(~same), slots.compress(~same)
            self._before[rows] = winners

    def _store(self, hashes: Hashes) -> None:
        """Write hashes to the next rows."""
        start = self._count + 1
        stop = start + len(hashes[0])
        if stop > len(self._before):
            rows = max(stop, len(self._before) * 65 // 64)
            # In place: the system moves pages of large columns without a copy. No view of a column outlives a call.
            self._before.resize(rows, refcheck=False)
            for column in self._columns:
                column.resize(rows, refcheck=False)
        for column, words in zip(self._columns, hashes, strict=True):
            column[start:stop] = words

    def _grow(self, count: int) -> None:
        """Move rows, if the table grows, or if it needs more slots for so many hashes."""
        slots = len(self._heads)
        if count <= _FULL * slots:
            return
        if not len(self._next):
            while count > _FULL * slots:
                slots *= 2
            self._next, self._cleared = np.empty(slots, dtype=np.uint32), 0
        if self._cleared < len(self._next):
            # In order, and not all at once: the system takes some microseconds for each page that is first written to,
            # and rows move to slots on all pages.
            self._next[self._cleared : self._cleared + _CLEARED] = 0
            self._cleared += _CLEARED
            if self._cleared < len(self._next):
                return
        for _ in range(_PACE):
            start, stop = self._moved + 1, min(self._moved + BLOCK, self._count) + 1
            self._link(self._next, start, _slots(self._columns[0][start:stop], self._next))
            self._moved = stop - 1
            if self._moved == self._count:
                self._heads, self._next, self._moved = self._next, self._next[:0].copy(), 0
                return


def _slots(first: Words, heads: Links) -> Rows:
    """Return the slot of each hash: as many of its upper bits as it takes to number the slots."""
    return (first >> np.uint64(65 - len(heads).bit_length())).view(np.int64)
