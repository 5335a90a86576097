"""Clock skew and senders, against counting one report at a time."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.build import SENDER_KEY, START
from uldp.collector.signals import (
    IMPROBABLE,
    SenderCounts,
    checked_sender_key,
    digest_of_day,
    improbable_counts,
    published_signals,
    sender_digest,
    signal_bits,
    skew_counts,
)
from uldp.schemas.pane import SKEW_RANGES, Sender, Signals

DAY = 86_400_000
NO_SKEW = np.zeros(2 * SKEW_RANGES, dtype=np.int64)
TIMES = st.integers(START - 10**9, START + 10**9) | st.integers(-(2**63), 2**63 - 1)


def range_of(event_time: int, published: int) -> int:
    """Below a second, then doubling."""
    seconds = abs(published - event_time) / 1000
    doublings = 0 if seconds < 1 else min(math.floor(math.log2(seconds)) + 1, SKEW_RANGES - 1)
    return doublings + SKEW_RANGES * (event_time > published)


@given(st.lists(TIMES, min_size=1))
def test_ranges_double_from_a_second_on(times: list[int]) -> None:
    improbable = np.arange(len(times)) % 2 == 1
    found = signal_bits(np.array(times, dtype=np.int64), np.full(len(times), START), improbable)
    assert (found & ~np.uint8(IMPROBABLE)).tolist() == [range_of(time, START) for time in times]
    assert (found >= IMPROBABLE).tolist() == improbable.tolist()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2 * SKEW_RANGES - 1), st.booleans())))
def test_signals_are_counted_by_group(reports: list[tuple[int, int, bool]]) -> None:
    groups = np.array([group for group, _, _ in reports], dtype=np.int64)
    signals = np.array([skew + IMPROBABLE * improbable for _, skew, improbable in reports], dtype=np.uint8)
    skews = Counter((group, skew) for group, skew, _ in reports)
    improbable = Counter(group for group, _, improbable in reports if improbable)
    expected = [[skews[group, skew] for skew in range(2 * SKEW_RANGES)] for group in range(4)]
    assert skew_counts(signals, groups, 4).tolist() == expected
    assert improbable_counts(signals, groups, 4).tolist() == [improbable[group] for group in range(4)]


def test_the_digest_of_a_key_is_stable() -> None:
    assert f"{sender_digest('gateway-1', SENDER_KEY):016x}" == "95a142e83aefedc9"
    assert sender_digest("gateway-1", SENDER_KEY) != sender_digest("gateway-1", bytes(32))
    # What no text encoding can write is a key all the same.
    assert sender_digest("\udcff", SENDER_KEY) != sender_digest("", SENDER_KEY)


@given(st.integers(0, 2**64 - 1), st.integers(-1000, 10**6))
def test_a_digest_is_published_otherwise_each_day_and_alike_on_one(digest: int, day: int) -> None:
    """So readers of results name the sender of two windows of a day, and cannot follow it to the next."""
    today, end = day * DAY, (day + 1) * DAY - 1
    assert digest_of_day(digest, today) == digest_of_day(digest, end) != digest_of_day(digest, end + 1)
    assert digest_of_day(digest, today) != f"{digest:016x}"
    published = published_signals(NO_SKEW, 0, summary([digest]), end)
    assert published.busiest_sender == Sender(digest_of_day(digest, today), 1)


def summary(senders: list[int]) -> SenderCounts:
    return SenderCounts.of(np.array(senders, dtype=np.uint64))


SENDERS = st.lists(st.integers(1, 30), min_size=1, max_size=60)


@given(SENDERS, SENDERS)
def test_few_senders_are_counted_exactly(a: list[int], b: list[int]) -> None:
    both = summary(a) + summary(b)
    assert dict(zip(both.digests.tolist(), both.reports.tolist(), strict=True)) == Counter(a + b)
    most = max(Counter(a + b).values())
    first = min(sender for sender, reports in Counter(a + b).items() if reports == most)
    assert both.busiest() == (first, most)


@given(st.lists(SENDERS, min_size=1, max_size=6), st.integers(1, 8))
def test_many_senders_are_counted_within_the_bound_of_the_summary(parts: list[list[int]], capacity: int) -> None:
    """Agarwal et al. (2012), Theorem 1: too low by N / (capacity + 1) at the most, never too high."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SenderCounts, "CAPACITY", capacity)
        merged = summary(parts[0])
        for part in parts[1:]:
            merged += summary(part)
    truth = Counter(sender for part in parts for sender in part)
    found = dict(zip(merged.digests.tolist(), merged.reports.tolist(), strict=True))
    assert len(found) <= capacity
    for sender, reports in truth.items():
        assert reports - truth.total() / (capacity + 1) <= found.get(sender, 0) <= reports


def test_many_senders_of_one_report_each_leave_no_busiest_one() -> None:
    senders = summary(list(range(1, SenderCounts.CAPACITY + 2)))
    assert senders.busiest() is None
    assert published_signals(NO_SKEW, 0, senders + senders, START) == Signals()
    assert (senders + summary([7, 7])).busiest() == (7, 2)


@pytest.mark.parametrize(("key", "found"), [(None, "none is given"), (b"short", "it is a bytes of 5")])
def test_a_limit_of_senders_needs_a_long_key(key: bytes | None, found: str) -> None:
    limited = build.spec(limits={"max_reports_per_sender": 3})
    assert checked_sender_key([build.spec()], key) is None
    with pytest.raises(ValueError, match=f"needs a sender_key of 32 bytes or more, and {found}"):
        checked_sender_key([limited], key)
