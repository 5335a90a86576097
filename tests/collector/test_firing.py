"""Which windows fire: against all windows one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR
from uldp.collector.collections import serve
from uldp.collector.firing import NEVER, Pending, fired_by, next_due, windows_of
from uldp.collector.partial import stack
from uldp.collector.window_keys import times_of
from uldp.schemas.arrays import Times
from uldp.schemas.pane import Accounting

PERIOD = 10
SLOTS = st.lists(st.integers(-9, 40) | st.integers(0, 10**9), max_size=12).map(
    lambda slots: [PERIOD * s for s in slots]
)
TIMES = st.integers(-200, 600) | st.sampled_from([-NEVER, NEVER])


def times(values: list[int]) -> Times:
    return np.array(values, dtype=np.int64)


@given(SLOTS, st.integers(1, 7), st.integers(0, PERIOD - 1), TIMES, TIMES)
def test_windows_of_slices_end_between_two_times(
    slots: list[int], length: int, offset: int, after: int, until: int
) -> None:
    size, slots = length * PERIOD, [slot + offset for slot in slots]
    wanted = {
        start
        for slot in slots
        for start in range(slot - size + PERIOD, slot + PERIOD, PERIOD)
        if after < start + size <= until
    }
    assert windows_of(times(slots), size, PERIOD, offset, after, until).tolist() == sorted(wanted)


@given(
    st.dictionaries(st.integers(0, 30), st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=9), st.integers(1, 7)
)
def test_what_is_missing_counts_in_the_window_that_begins_with_it(of: dict[int, tuple[int, int]], length: int) -> None:
    size = length * PERIOD
    slices = stack(
        {PERIOD * slot: build.part(accounting=Accounting(n, missing=lost)) for slot, (n, lost) in of.items()}
    )
    starts = times(list(range(-size, 40 * PERIOD, PERIOD)))
    for start, fired in zip(starts.tolist(), fired_by(slices, starts, size).tolist(), strict=True):
        accounting = slices.window(start, start + size).accounting
        assert fired == accounting.received + accounting.missing
        inside = [of[slot][0] for slot in of if start <= PERIOD * slot < start + size]
        assert accounting.received == sum(inside)
        assert accounting.missing == (of[start // PERIOD][1] if start // PERIOD in of else 0)


def test_the_next_timer_is_at_the_next_end_and_then_when_all_is_freed() -> None:
    spec = build.spec(window={"size": "3h", "period": "1h", "allowed_lateness": "2h"})
    served = serve([spec])[spec.key]
    slots = times([0, 5 * HOUR])
    found = [next_due(times_of(served.alike), served.held_for, slots, until * HOUR) for until in (-1, 0, 1, 2, 3, 6, 7)]
    assert found == [HOUR, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 7 * HOUR, 8 * HOUR]
    assert next_due(times_of(served.alike), served.held_for, slots, 8 * HOUR) == 8 * HOUR + served.held_for
    assert served.held_for == (2 + 24 + 1 + 3) * HOUR


def test_what_is_pending_is_read_back() -> None:
    assert Pending.unpack(None) == Pending()
    for pending in (Pending(), Pending(5, -NEVER, {10_000: 2**50}), Pending(2**50, 2**50 + 1, {1: 3, 2: 5})):
        assert Pending.unpack(pending.pack()) == pending
