"""What a file of rejected reports keeps in full: all that a client may have sent, and of all else a sample."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from uldp.schemas.places import numbers_in, runs_of
from uldp.schemas.records import NO_ATTRIBUTES
from uldp.schemas.rejected import Rejected, joined_rejected

#: No report is smaller, so that nothing is worth a replay of messages that are. And data that takes a fiftieth when
#: compressed is not that of devices, whose ids are random. Of such data a file keeps that many records in full for each
#: reason, and so many bytes of them.
SAMPLE, SAMPLE_BYTES, RARE_RATIO = 100, 1 << 16, 50
#: The fewest bytes of a report in a message of many.
REPORT_BYTES = 28
#: A record of many messages has about so many bytes.
PART_BYTES = 1 << 20


def parts(record: Rejected) -> Iterator[Rejected]:
    """Cut a record of many messages into records of at most ``PART_BYTES``, because a reader holds one as a whole."""
    if len(record.bodies) < 2 or record.nbytes <= PART_BYTES:
        yield record
        return
    ends = np.cumsum(np.fromiter(map(len, record.bodies), np.int64, len(record.bodies)))
    numbers = numbers_in(record.place[1])
    for of_part in np.split(numbers, np.flatnonzero(np.diff(ends // PART_BYTES)) + 1):
        yield record.at(runs_of(of_part))


def sampled(records: Iterable[Rejected], *, smaller_than: int) -> list[Rejected]:
    """Keep messages of one source, but of those with fewer bytes one in full for each reason; count the others."""
    ordered = sorted(records, key=lambda each: (each.place, each.reason, each.bodies))
    seen: Counter[str] = Counter()
    nbytes: Counter[str] = Counter()
    full, counted = [], []
    for record in ordered:
        runs = record.place[1]
        if not runs:
            full.append(record)
            continue
        sizes = np.fromiter(map(len, record.bodies), np.int64, len(record.bodies))
        before = nbytes[record.reason] + np.cumsum(sizes)
        few = (seen[record.reason] + np.arange(len(sizes)) < SAMPLE) & (before <= np.maximum(SAMPLE_BYTES, sizes))
        seen[record.reason] += len(sizes)
        nbytes[record.reason] += int(sizes.sum())
        whole = few | (sizes >= smaller_than)
        if len(whole) and whole.all():
            full.append(record)
        elif not whole.any():
            counted.append(_counted(record))
        else:
            numbers = numbers_in(runs)
            full.append(record.at(runs_of(numbers[whole])))
            counted.append(_counted(record.at(runs_of(numbers[~whole]))))
    return sorted([*full, *joined_rejected(counted)], key=lambda each: (each.place, each.reason, each.bodies))


def _counted(record: Rejected) -> Rejected:
    return replace(record, bodies=(), publish_times=record.publish_times[:1], attributes=NO_ATTRIBUTES, attempt=1)
