"""The ids of reports that a stage has seen, in a set for each time at which they expire; the stage adds columns of ids.

A set that has expired is dropped whole. Sets hold keyed hashes of 64 bits in place of ids, or all 128 bits of ids whose
collection asks for that.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from uldp.collector.collections import ServedCollection
from uldp.collector.columns import MixedColumns
from uldp.collector.hashing import hash_key, hash_words, mask_of
from uldp.collector.id_table import BLOCK, Hashes, IdTable
from uldp.schemas.arrays import Mask, ReportIds, Rows, Times
from uldp.schemas.specs.collection import CollectionKey


class Lot(NamedTuple):
    """The ids of a set: those that expire together, and are kept alike."""

    until: int  # the time from which no copy of them is counted, in milliseconds
    exact: bool  # whether all 128 bits are kept

    @property
    def columns(self) -> int:
        """Number of words of a hash."""
        return 2 if self.exact else 1


class Added(NamedTuple):
    """What became of ids."""

    new: Mask  # shape (n,): which ids were new. Of several copies of a new id, only the first counts as new.
    lots: list[tuple[Lot, Hashes]]  # the hashes of the new ids, as the sets hold them


class SeenIds:
    """The ids that have not been forgotten, each looked up at all times, for a copy may name another."""

    def __init__(self, secret: bytes) -> None:
        """Make an empty set, whose hashes depend on 16 secret bytes."""
        self._key = hash_key(secret)
        self._tables: dict[Lot, IdTable] = {}

    def __len__(self) -> int:
        return sum(map(len, self._tables.values()))

    @property
    def nbytes(self) -> int:
        """Size of the arrays."""
        return sum(table.nbytes for table in self._tables.values())

    def add(self, ids: ReportIds, until: Times | int = 0, exact: Mask | bool = True) -> Added:
        """Add ids, which expire at ``until``, in milliseconds, and are kept whole where ``exact``."""
        new, lots = np.ones(len(ids), dtype=np.bool_), list[tuple[Lot, Hashes]]()
        for start in range(0, len(ids), BLOCK):
            block = slice(start, start + BLOCK)
            low, high = ids[block, 0].copy(), ids[block, 1].copy()
            lots += self._add(
                hash_words(self._key, low, high),
                until[block] if isinstance(until, np.ndarray) else until,
                exact[block] if isinstance(exact, np.ndarray) else exact,
                new[block],
            )
        return Added(new, lots)

    def restore(self, lot: Lot, hashes: Hashes) -> None:
        """Add hashes as ``add`` gave them, unless they are there; these may be any number."""
        for start in range(0, len(hashes[0]), BLOCK):
            block = [words[start : start + BLOCK] for words in hashes]
            list(self._add(block, lot.until, lot.exact, np.ones(len(block[0]), dtype=np.bool_)))

    def forget(self, now: int) -> None:
        """Forget what has expired at this time, in milliseconds."""
        self._tables = {lot: table for lot, table in self._tables.items() if lot.until > now}

    def _add(self, hashes: Hashes, until: Times | int, exact: Mask | bool, new: Mask) -> Iterator[tuple[Lot, Hashes]]:
        """Add a block of hashes; clear ``new`` for each copy, and yield the others."""
        for table in self._tables.values():
            left = np.flatnonzero(new)
            new[left.compress(table.find(_of(hashes, left)))] = False
        left = np.flatnonzero(new)
        lots = list(_lots(until, exact, left))
        if len(lots) > 1:  # copies may expire at different times
            fresh = IdTable(len(hashes)).insert(_of(hashes, left))
            new[left.compress(~fresh)] = False
            lots = list(_lots(until, exact, left.compress(fresh)))
        for lot, rows in lots:
            table = self._tables.setdefault(lot, IdTable(lot.columns))
            fresh = table.insert(_of(hashes[: lot.columns], rows))
            new[rows.compress(~fresh)] = False
            yield lot, _of(hashes[: lot.columns], rows.compress(fresh))


def _of(hashes: Hashes, rows: Rows) -> Hashes:
    """Return some of the hashes; all of them as they are."""
    return hashes if len(rows) == len(hashes[0]) else [words.take(rows) for words in hashes]


def _lots(until: Times | int, exact: Mask | bool, rows: Rows) -> Iterator[tuple[Lot, Rows]]:
    """Split some rows by lot."""
    if not len(rows):
        return
    codes = np.asarray(2 * np.asarray(until, dtype=np.int64) + exact)
    codes = codes.take(rows) if codes.ndim else codes.reshape(1)
    if codes.min() == codes.max():
        yield Lot(int(codes[0]) >> 1, bool(codes[0] & 1)), rows
        return
    for code in np.unique(codes).tolist():
        yield Lot(code >> 1, bool(code & 1)), rows.compress(codes == code)


#: Ids that a shard adds to one of its bags before it adds to another; they take 8 MiB, or twice that if exact.
FILL = 1 << 20


def masked_ids(parts: MixedColumns) -> ReportIds:
    """Join the ids of reports of several collections, so that equal ids of different collections differ."""
    ids = np.concatenate([part.report_ids for part in parts])
    ids ^= np.repeat([mask_of(part.collection) for part in parts], [len(part) for part in parts], axis=0)
    return ids


def expiries(served: Mapping[CollectionKey, ServedCollection], parts: MixedColumns) -> Times:
    """Return the time at which to forget the id of each report: no copy is counted from then on."""
    of = [served[part.collection, part.version] for part in parts]
    slices = np.concatenate([part.slices for part in parts])
    if len({(each.slice_size, each.remembered_for) for each in of}) == 1:
        return of[0].forgotten_at(slices)
    start = 0
    for each, part in zip(of, parts, strict=True):
        slices[start : start + len(part)] = each.forgotten_at(part.slices)
        start += len(part)
    return slices


def are_exact(served: Mapping[CollectionKey, ServedCollection], parts: MixedColumns) -> Mask | bool:
    """Return for which reports all bits of the id are kept; one value if it holds for all of them."""
    exact = [served[part.collection, part.version].spec.dedup == "exact" for part in parts]
    return exact[0] if len(set(exact)) == 1 else np.repeat(exact, list(map(len, parts)))


def forget_at(expiring: Mapping[int, int]) -> int:
    """Return the first time at which a sixteenth of the ids have expired, given the number of ids by expiry.

    To forget some ids of a bag, a job reads the bag, and writes the rest again. If it did so at each expiry, the ids of
    a collection with windows of a day would be written again for each minute of one with windows of a minute. This way
    it writes an id 16 times at the most for each time that it forgets one, and holds a fifteenth more than it needs.
    """
    enough = sum(expiring.values()) / 16
    expired = accumulate(expiring[until] for until in sorted(expiring))
    return next(until for until, ids in zip(sorted(expiring), expired, strict=True) if ids >= enough)


def bag_to_fill(sizes: Sequence[int]) -> int:
    """Return the bag to which a shard adds ids next, given the number of ids in each of its bags.

    A shard adds ids to one bag until it has ``FILL`` more, and then to the next. A store of state that writes a value
    anew when it grows, as RocksDB does, then writes the other bags no more, and not all ids of the shard each time.
    """
    return max(range(len(sizes)), key=lambda bag: (-(sizes[bag] // FILL), sizes[bag]))
