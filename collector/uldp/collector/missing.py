"""The windows that were open while a source lost messages, in which the reports of these messages are missing."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from uldp.collector.collections import YEAR_9000, ServedCollection
from uldp.collector.partial import Partial, numbers_of
from uldp.schemas.records import Missing
from uldp.schemas.specs.collection import CollectionKey
from uldp.schemas.specs.durations import milliseconds

#: A loss is accounted in so many windows of a collection at the most, the newest ones.
MOST_WINDOWS = 10_000


def account_missing(
    collections: Mapping[CollectionKey, ServedCollection], missing: Iterable[Missing]
) -> Iterator[tuple[CollectionKey, Partial]]:
    """Account missing messages in each window of each collection that was open when they were lost.

    A collection that opened later has none of them.

    Nobody knows of which collection and window they were, so each of these windows has all of them.

    Yields:
        A collection, and the parts of its windows by start. A slice may be in several sliding windows; what is missing
        is in the slice with which the window begins, and ``uldp.transforms.slide`` adds it to no other window.
    """
    for record in missing:
        for key, served in collections.items():
            if max(record.before, 0) < served.opens:
                continue
            starts = np.array(open_windows(served, record.after, record.before), dtype=np.int64)
            yield key, Partial(starts, numbers_of(len(starts), missing=record.count))


def open_windows(served: ServedCollection, after: int, before: int) -> range:
    """Return the starts of the windows that count reports of messages published between two times, in milliseconds.

    A window counts them from its start until the allowed lateness after its end; of more than ``MOST_WINDOWS``, the
    function returns the last.
    """
    period, lateness = served.slice_size, milliseconds(served.spec.window.allowed_lateness)
    before = min(max(before, 0), YEAR_9000 - 1)
    newest = served.slice_start(before)
    ended = max(min(after, before) - lateness, 0)  # a window that ended by this time is closed
    oldest = served.slice_start(ended - served.window_size) + period
    return range(max(oldest, newest - (MOST_WINDOWS - 1) * period), newest + period, period)
