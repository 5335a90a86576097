"""The sufficient statistic: support counts of time slices."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import cast

import numpy as np

from uldp.collector.collections import YEAR_9000, ServedCollection
from uldp.collector.columns import ReportColumns, slices_of_many
from uldp.collector.groups import Place
from uldp.collector.partial import Partial, numbers_of
from uldp.collector.repeats import CELLS, Sketched, payload_cells
from uldp.collector.signals import improbable_counts, skew_counts
from uldp.mechanisms.protocol.cells import Cells, as_sparse, count_symbols, smallest, stack_cells
from uldp.schemas.arrays import Packed, SignalBits, Symbols, Times
from uldp.schemas.records import Missing
from uldp.schemas.specs.collection import CollectionKey
from uldp.schemas.specs.durations import milliseconds

#: A group of collections, and the start of a span of time slices in milliseconds; see ``Grouping``.
SpanKey = tuple[tuple[str, int], int]


def count_support(
    served: ServedCollection,
    collections: Mapping[Place, Sequence[ReportColumns]],
    origins: Callable[[ServedCollection, Times], Times],
) -> Iterator[tuple[SpanKey, Partial]]:
    """Count the reports of each time slice of collections with the same rules: few reports take as long as many.

    Each collection has one or more reports, in one part or more. For ``origins`` see ``Grouping``. Yield the group of
    some of the collections and the start of a span of their slices, and the span.
    """
    parts = [part for parts in collections.values() for part in parts]
    reports = [sum(map(len, parts)) for parts in collections.values()]
    of, starts, groups = slices_of_many(np.concatenate([part.slices for part in parts]), reports, served.slice_size)
    k = len(starts)
    cells = served.mechanism.tally([part.payloads for part in parts], groups, k)
    payloads = _sketches(served.sketched, parts, groups, k) if served.sketched else None
    signals = np.concatenate([part.signals for part in parts])
    n, skew, improbable = np.bincount(groups), skew_counts(signals, groups, k), improbable_counts(signals, groups, k)
    numbers = numbers_of(k, skew, improbable, received=n, counted=n)
    names = {place.group: number for number, place in enumerate(collections)}
    named = np.array([names[place.group] for place in collections])[of]
    slots = starts + np.array([place.offset for place in collections])[of]
    spans = origins(served, starts)
    order = np.lexsort((slots, spans, named))
    named, spans, slots, numbers = named[order], spans[order], slots[order], numbers[order]
    cells = [cells[row] for row in order.tolist()]
    payloads = None if payloads is None else [payloads[row] for row in order.tolist()]
    ends = np.flatnonzero((spans[1:] != spans[:-1]) | (named[1:] != named[:-1])) + 1
    keys = list(collections)
    for first, end in pairwise([0, *ends.tolist(), k]):
        rows = slice(first, end)
        sketches = None if payloads is None else stack_cells(payloads[rows])
        span = Partial(slots[rows], numbers[rows], stack_cells(cells[rows]), payloads=sketches)
        yield (keys[named[first]].group, int(spans[first])), span


def _sketches(sketched: Sketched, parts: Sequence[ReportColumns], groups: Symbols, k: int) -> list[Cells]:
    """Return the sketch of the payloads of each of k groups of reports; few reports have a sparse one."""
    payloads = [cast(Packed, part.payloads) for part in parts]
    if sketched.parts is not None:
        rows = [sketched.rows(each) for each in payloads]
        payloads = [each[of] for each, of in zip(payloads, rows, strict=True)]
        groups = groups[np.concatenate(rows)]
    hashed = np.concatenate([payload_cells(each) for each in payloads])
    counted = count_symbols(hashed, groups, k, CELLS)
    return [smallest(as_sparse(cells)) if isinstance(cells, np.ndarray) else cells for cells in counted]


def accounted(served: ServedCollection, slices: Times, signals: SignalBits, outcome: str) -> Partial:
    """Return the accounting, as ``outcome`` of ``Accounting``, of the slices of reports that are not counted."""
    _, starts, groups = slices_of_many(slices, [len(slices)], served.slice_size)
    k, n = len(starts), np.bincount(groups)
    return Partial(starts, numbers_of(k, skew_counts(signals, groups, k), received=n, **{outcome: n}))


#: A loss is accounted in so many windows of a collection at the most, the newest ones.
MOST_WINDOWS = 10_000


def account_missing(
    collections: Mapping[CollectionKey, ServedCollection], missing: Iterable[Missing]
) -> Iterator[tuple[CollectionKey, Partial]]:
    """Account missing messages in each window of each collection that was open when they were lost.

    A collection that opened later has none of them. Nobody knows of which collection and window they were, so each of
    these windows has all of them. A slice may be in several sliding windows; what is missing is in the slice with which
    the window begins, and ``uldp.transforms.slide`` adds it to no other window.
    """
    for record in missing:
        for key, served in collections.items():
            if max(record.before, 0) < served.opens:
                continue
            starts = np.array(open_windows(served, record.after, record.before), dtype=np.int64)
            yield key, Partial(starts, numbers_of(len(starts), missing=record.count))


def open_windows(served: ServedCollection, after: int, before: int) -> range:
    """Return the starts of the last ``MOST_WINDOWS`` windows that count a message published between two times."""
    period, lateness = served.slice_size, milliseconds(served.spec.window.allowed_lateness)
    before = min(max(before, 0), YEAR_9000 - 1)
    newest = served.slice_start(before)
    ended = max(min(after, before) - lateness, 0)  # a window that ended by this time is closed
    oldest = served.slice_start(ended - served.window_size) + period
    return range(max(oldest, newest - (MOST_WINDOWS - 1) * period), newest + period, period)
