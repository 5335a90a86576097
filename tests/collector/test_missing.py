"""Messages that a source lost are missing in each window that was open, once."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR, MINUTE, START
from uldp.collector.collections import YEAR_9000, ServedCollection, serve
from uldp.collector.counting import MOST_WINDOWS, account_missing, open_windows
from uldp.schemas.records import Missing

LONGEST = 2**63 - 1
WINDOWS = st.sampled_from(
    [
        {"size": "1h"},
        {"size": "1h", "allowed_lateness": "90m"},
        {"size": "1h", "period": "15m", "allowed_lateness": "10m"},
        {"size": "1h", "period": "15m", "offset": "7m"},
    ]
)


def served(**window: str) -> ServedCollection:
    (only,) = serve([build.spec(window=window)]).values()
    return only


@given(WINDOWS, st.integers(-5 * HOUR, 5 * HOUR), st.integers(0, 5 * HOUR))
def test_a_window_is_open_from_its_start_until_its_lateness_has_passed(
    window: dict[str, str], after: int, duration: int
) -> None:
    collection, after = served(**window), START + after
    before = after + duration
    lateness = collection.closes_after - collection.window_size
    first = START - 20 * HOUR + collection.offset
    candidates = range(first, first + 40 * HOUR, collection.slice_size)
    wanted = [start for start in candidates if start <= before and start + collection.window_size + lateness > after]
    assert list(open_windows(collection, after, before)) == wanted


@pytest.mark.parametrize(
    ("after", "before"), [(-LONGEST, LONGEST), (0, YEAR_9000), (LONGEST, 0), (START, 0), (0, START), (LONGEST, LONGEST)]
)
@pytest.mark.parametrize("window", [{"size": "1m"}, {"size": "1h", "period": "1m", "allowed_lateness": "1d"}])
def test_they_are_not_many_whatever_the_times_are(window: dict[str, str], after: int, before: int) -> None:
    starts = open_windows(served(**window), after, before)
    assert 1 <= len(starts) <= MOST_WINDOWS
    assert starts[-1] == min(before, YEAR_9000 - 1) // MINUTE * MINUTE


@pytest.mark.parametrize("after", [0, -1, -HOUR])
def test_no_window_of_before_1970_is_open(after: int) -> None:
    assert [*open_windows(served(size="1h"), after, MINUTE)] == [0]


def test_each_of_them_has_all_messages_in_each_collection() -> None:
    collections = serve([build.spec(), build.spec(version=2, window={"size": "2h"})])
    missing = [Missing("t/0", 0, 9, START, START), Missing("t/1", 5, 5, START, START + HOUR)]
    found: Counter[tuple[int, int]] = Counter()
    for (_, version), parts in account_missing(collections, missing):
        assert (parts.cells, parts.accounting.received) == (None, 0)
        for start, part in parts.slices():
            found[version, (start - START) // HOUR] += part.accounting.missing
    assert found == {(1, 0): 11, (1, 1): 1, (2, -1): 11, (2, 1): 1}
