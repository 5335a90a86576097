"""The ids of reports as deduplication remembers them: of all collections together, and by the time of their expiry."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

import numpy as np

from uldp.collector.collections import ServedCollection
from uldp.collector.columns import MixedColumns, ids_by_slice
from uldp.collector.hashing import mask_of
from uldp.schemas.arrays import Mask, ReportIds, Times
from uldp.schemas.specs.collection import CollectionKey

#: Ids that a shard adds to one of its bags before it adds to another; they take 8 MiB.
FILL = 1 << 19


def masked_ids(parts: MixedColumns) -> ReportIds:
    """Join the ids of reports of several collections, so that equal ids of different collections differ."""
    ids = np.empty((sum(map(len, parts)), 2), dtype=np.uint64)
    start = 0
    for part in parts:
        np.bitwise_xor(part.report_ids, mask_of(part.collection), out=ids[start : start + len(part)])
        start += len(part)
    return ids


def ids_by_expiry(
    served: Mapping[CollectionKey, ServedCollection], parts: MixedColumns, ids: ReportIds, fresh: Mask
) -> Iterator[tuple[int, ReportIds]]:
    """Split those of ``ids``, which are of ``parts``, that are ``fresh`` by the time from which no copy is counted."""
    policies: defaultdict[tuple[int, int], list[tuple[Times, slice]]] = defaultdict(list)
    start = 0
    for part in parts:
        of = served[part.collection, part.version]
        policies[of.slice_size, of.remembered_for].append((part.slices, slice(start, start + len(part))))
        start += len(part)
    all_fresh = fresh.all()
    for (slice_size, remembered_for), of_policy in policies.items():
        slices = np.concatenate([slices for slices, _ in of_policy])
        of_these, rows = ids, fresh
        if len(policies) > 1:
            of_these = np.concatenate([ids[rows] for _, rows in of_policy])
            rows = np.concatenate([fresh[part] for _, part in of_policy])
        if not all_fresh:
            slices, of_these = slices.compress(rows), of_these.compress(rows, axis=0)
        if len(slices):
            for start_of_slice, expiring in ids_by_slice(of_these, slices, slice_size):
                yield start_of_slice + remembered_for, expiring


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
