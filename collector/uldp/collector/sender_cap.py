"""Count no more than so many reports of a sender in a time slice, and make records of the others.

Of the reports of one sender, those that come first are counted. So their number depends only on how many came, and not
on the order, the bundles or the workers.
"""

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import Self, cast

import numpy as np

from uldp.collector.collections import ServedCollection
from uldp.collector.columns import MixedColumns, ReportColumns, grouped, slices_of_many
from uldp.collector.hashing import spread
from uldp.collector.origins import Origins
from uldp.collector.rejects import rejected_records
from uldp.schemas.arrays import Counts, Digests, Mask, Packed, Rows
from uldp.schemas.codec.columnar import Layout, report_schema
from uldp.schemas.codec.encode import encode_batch, encode_columns
from uldp.schemas.reasons import Reason
from uldp.schemas.rejected import Rejected, joined_rejected
from uldp.schemas.specs.collection import CollectionKey

#: A part of all senders, and the time from which none of its reports can be counted any more, in milliseconds.
SenderShard = tuple[int, int]
#: A collection and version, and the start of a time slice.
SliceOfCollection = tuple[str, int, int]

_ENTRY = struct.Struct("<HIqI")


def by_sender(
    parts: MixedColumns, served: Mapping[CollectionKey, ServedCollection], shards: int, *, forgets: bool
) -> tuple[MixedColumns, dict[SenderShard, MixedColumns]]:
    """Split reports by sender, so that all reports that a cap counts together reach one shard.

    The digests of senders are keyed, so no sender can fill one shard. Reports without a sender are those of one sender:
    whoever could leave out the attribute would else have no cap. Return the reports of collections without a cap, and
    the others by shard: if it ``forgets``, one of reports whose slices take no more reports at the same time.
    """
    free, capped = [], defaultdict[SenderShard, list[ReportColumns]](list)
    for part in parts:
        collection = served[part.collection, part.version]
        if collection.sender_cap is None:
            free.append(part)
            continue
        _, starts, groups = slices_of_many(part.slices, [len(part)], collection.slice_size)
        numbers = groups * shards + spread(_origins(part).senders, shards).astype(np.int64)
        for number, rows in grouped(numbers):
            group, shard = divmod(number, shards)
            closes = int(starts[group]) + collection.closes_after if forgets else 0
            capped[shard, closes].append(part if rows is None else part.take(rows))
    return MixedColumns(tuple(free)), {key: MixedColumns(tuple(each)) for key, each in capped.items()}


class CountedOfSenders:
    """How many reports of each sender a shard has let through, by time slice of a collection and version."""

    def __init__(self) -> None:
        self._counts = defaultdict[SliceOfCollection, dict[int, int]](dict)

    @classmethod
    def read(cls, entries: Iterable[bytes]) -> Self:
        """Read what ``admit`` returned, of all bundles."""
        found = cls()
        for entry in entries:
            key, senders, counts = unpack_counts(entry)
            of_slice = found._counts[key]
            for sender, count in zip(senders.tolist(), counts.tolist(), strict=True):
                of_slice[sender] = of_slice.get(sender, 0) + count
        return found

    def admit(self, served: ServedCollection, part: ReportColumns) -> tuple[Mask, list[bytes]]:
        """Return which reports of a capped collection count, (n,), and the entries of state for these."""
        assert served.sender_cap is not None
        admitted, entries = np.ones(len(part), dtype=np.bool_), []
        senders = _origins(part).senders
        _, starts, groups = slices_of_many(part.slices, [len(part)], served.slice_size)
        for group, rows in grouped(groups):
            key = part.collection, part.version, int(starts[group])
            of_slice = senders if rows is None else senders[rows]
            let, new, counts = first_of_senders(self._counts[key], of_slice, served.sender_cap)
            admitted[slice(None) if rows is None else rows] = let
            if len(new):
                entries.append(pack_counts(key, new, counts))
        return admitted, entries


def first_of_senders(counted: dict[int, int], senders: Digests, cap: int) -> tuple[Mask, Digests, Counts]:
    """Let the first reports of each sender, shape (n,), through, up to the cap.

    ``counted`` has the number of reports that were let through before, by sender; it is updated. Return which are let
    through, shape (n,); and the senders who have such reports, and the number of these.
    """
    order = np.argsort(senders, kind="stable")
    in_order = senders[order]
    firsts = np.flatnonzero(np.concatenate([[True], in_order[1:] != in_order[:-1]]))
    reports = np.diff(firsts, append=len(order))
    each = in_order[firsts]
    before = np.fromiter(map(counted.get, each.tolist(), repeat(0)), dtype=np.int64, count=len(each))
    let = np.clip(cap - before, 0, reports)
    admitted = np.empty(len(order), dtype=np.bool_)
    admitted[order] = np.arange(len(order)) - np.repeat(firsts, reports) < np.repeat(let, reports)
    new = let > 0
    each, before, let = each[new], before[new], let[new]
    counted.update(zip(each.tolist(), (before + let).tolist(), strict=True))
    return admitted, each, let


def pack_counts(key: SliceOfCollection, senders: Digests, counts: Counts) -> bytes:
    """Write numbers of reports by sender as one state entry."""
    collection, version, start = key
    name = collection.encode()
    head = _ENTRY.pack(len(name), version, start, len(senders))
    return head + name + senders.astype("<u8").tobytes() + counts.astype("<u4").tobytes()


def unpack_counts(entry: bytes) -> tuple[SliceOfCollection, Digests, Counts]:
    """Read back what ``pack_counts`` wrote."""
    length, version, start, n = _ENTRY.unpack_from(entry)
    at = _ENTRY.size + length
    senders = np.frombuffer(entry, "<u8", n, at).astype(np.uint64)
    counts = np.frombuffer(entry, "<u4", n, at + 8 * n).astype(np.int64)
    return (entry[_ENTRY.size : at].decode(), version, start), senders, counts


def over_limit(served: ServedCollection, part: ReportColumns) -> list[Rejected]:
    """Return records of reports over the limit of their senders; those of a message, if several, together."""
    origins, ids, payloads = _origins(part), part.report_ids, cast(Packed, part.payloads)
    layout = Layout.of(report_schema(), part.collection, part.version, served.mechanism.form.width)
    by_message = [*origins.by_message()]
    alone = np.array([rows[0] for rows in by_message if len(rows) == 1], dtype=np.intp)
    bodies = encode_columns(layout, ids[alone], origins.event_times[alone], payloads[alone])
    found = [*_records(served, origins, alone, bodies, 1)] if bodies else []
    for rows in by_message:
        if len(rows) > 1:
            rows = np.sort(rows)
            body = encode_batch(*served.spec.key, ids[rows], origins.event_times[rows], payloads[rows])
            found += _records(served, origins, rows[:1], [body], len(rows))
    return joined_rejected(found)


def _records(
    served: ServedCollection, origins: Origins, rows: Rows, bodies: list[bytes], reports: int
) -> Iterator[Rejected]:
    """Yield records of messages of so many reports each, whose origins are those of the reports in ``rows``."""
    messages = origins.take(rows).messages(bodies)

    def detail(row: int) -> str:
        of_sender = "of its sender" if origins.senders[row] else "of messages that name no sender"
        window = "window" if served.spec.window.period is None else "period"
        return f"the {window} has {served.sender_cap:,} reports {of_sender} already"

    of_all, reason = np.arange(len(rows)), Reason.OVER_SENDER_LIMIT
    return rejected_records(reason, messages, of_all, bodies, detail, rows, reports=reports, stage="senders")


def _origins(part: ReportColumns) -> Origins:
    assert part.origins is not None
    return part.origins
