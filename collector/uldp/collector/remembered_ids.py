"""The ids of reports as deduplication remembers them: of all collections together, and by the time of their expiry."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from uldp.collector.collections import ServedCollection
from uldp.collector.columns import MixedColumns
from uldp.collector.hashing import mask_of
from uldp.schemas.arrays import Mask, ReportIds, Times
from uldp.schemas.specs.collection import CollectionKey

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
