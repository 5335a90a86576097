"""Parts of a window are a commutative monoid, with all that they hold."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from uldp.collector.partial import PartialStatistic
from uldp.collector.signals import PartialSignals, SenderCounts
from uldp.mechanisms.protocol.cells import SparseCells, as_dense
from uldp.schemas.pane import SKEW_RANGES, Accounting, Signals

COUNTERS = st.integers(0, 1000)
SIGNALS = st.builds(
    PartialSignals,
    st.none() | st.lists(COUNTERS, min_size=2 * SKEW_RANGES, max_size=2 * SKEW_RANGES).map(np.array),
    COUNTERS,
    st.none()
    | st.lists(st.integers(1, 5), min_size=1).map(lambda senders: SenderCounts.of(np.array(senders, dtype=np.uint64))),
)
PARTIAL = st.builds(
    PartialStatistic,
    st.none()
    | st.lists(COUNTERS, min_size=3, max_size=3).map(lambda counts: np.array(counts, dtype=np.int64))
    | st.builds(lambda symbol, n: SparseCells(3, np.array([symbol]), np.array([n])), st.integers(0, 2), COUNTERS),
    st.builds(Accounting, *[COUNTERS] * 6),
    SIGNALS,
)


def value(partial: PartialStatistic) -> tuple[list[int] | None, Accounting, Signals]:
    counts = None if partial.cells is None else as_dense(partial.cells).tolist()
    return counts, partial.accounting, partial.signals.published(0)


@given(PARTIAL, PARTIAL, PARTIAL)
def test_partial_counts_are_a_commutative_monoid(a: PartialStatistic, b: PartialStatistic, c: PartialStatistic) -> None:
    assert value(a + b) == value(b + a)
    assert value((a + b) + c) == value(a + (b + c))
    assert value(a + PartialStatistic()) == value(a)


def test_partial_counts_add_symbol_by_symbol() -> None:
    a = PartialStatistic(np.array([1, 2]), Accounting(received=3, counted=3), PartialSignals(improbable=1))
    b = PartialStatistic(np.array([10, 0]), Accounting(received=12, counted=10, late=2), PartialSignals(improbable=2))
    assert value(a + b) == ([11, 2], Accounting(received=15, counted=13, late=2), Signals(improbable_reports=3))


def test_a_sum_leaves_its_parts_as_they_were() -> None:
    a, b = PartialStatistic(np.array([1, 2])), PartialStatistic(np.array([3, 4]))
    _ = a + b
    assert (value(a)[0], value(b)[0]) == ([1, 2], [3, 4])
