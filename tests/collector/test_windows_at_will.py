"""The reports of one message fall into a bounded number of time slices, the newest ones."""

import numpy as np
import pytest

from tests.build import HOUR, START
from tests.collector.decoding import BITS, RETIRED, SLIDING, SYMBOL, YEAR, accounting, decode
from uldp.collector.judge import MAX_MESSAGE_SLICES
from uldp.collector.reader import Decoded
from uldp.schemas.codec.encode import encode_batch
from uldp.schemas.pane import Accounting
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message

QUARTER = HOUR // 4


def batch(slices: np.ndarray, key: tuple[str, int] = SYMBOL.key, size: int = HOUR, payload: int = 3) -> Message:
    """A report for each slice, which is given as a number of slices before ``START``."""
    n = len(slices)
    ids = np.arange(2 * n, dtype=np.uint64).reshape(n, 2)
    return Message(encode_batch(*key, ids, START - slices * size, np.full(n, payload, np.uint32)), START)


def counted(decoded: Decoded, size: int = HOUR) -> list[int]:
    """The slices of counted reports, as a number of slices before ``START``."""
    return sorted((START - start) // size for columns in decoded.columns for start in columns.slices.tolist())


@pytest.mark.parametrize("n", [1, MAX_MESSAGE_SLICES - 1, MAX_MESSAGE_SLICES, MAX_MESSAGE_SLICES + 1, 4_000])
@pytest.mark.parametrize(("key", "size"), [(SYMBOL.key, HOUR), (SLIDING.key, QUARTER)])
def test_a_message_has_reports_of_so_many_slices(n: int, key: tuple[str, int], size: int) -> None:
    slices = np.random.default_rng(1).permutation(n)
    decoded = decode(batch(slices, key, size), judge_lateness=False)
    over = max(n - MAX_MESSAGE_SLICES, 0)
    assert counted(decoded, size) == [*range(n - over)]
    assert [(each.reason, each.reports) for each in decoded.rejected] == [(Reason.TOO_MANY_WINDOWS, over)] * bool(over)
    assert decoded.received == n
    # No window but that of the publish time has them in its accounting.
    assert accounting(decoded) == ({(key, START): Accounting(over, rejected=over)} if over else {})


@pytest.mark.parametrize(("bounded", "hours"), [(True, 100), (False, 0)])
def test_a_rejected_report_is_in_its_own_slice_while_its_windows_can_change(bounded: bool, hours: int) -> None:
    """In a bounded job they can for ever; a stream has no state of them any more, and takes the publish time's."""
    decoded = decode(batch(np.array([100]), payload=1 << 20), judge_lateness=not bounded)
    assert accounting(decoded) == {(SYMBOL.key, START - hours * HOUR): Accounting(1, rejected=1)}


def test_the_detail_names_the_time_and_the_limit() -> None:
    (rejected,) = decode(batch(np.arange(MAX_MESSAGE_SLICES + 1)), judge_lateness=False).rejected
    time = START - MAX_MESSAGE_SLICES * HOUR
    assert rejected.detail == f"event time {time} is not in the newest 600 time slices of its message"


def test_each_message_has_a_limit_of_its_own() -> None:
    first, second = np.arange(MAX_MESSAGE_SLICES), np.arange(MAX_MESSAGE_SLICES) + 3 * MAX_MESSAGE_SLICES
    small, large = np.array([5 * MAX_MESSAGE_SLICES]), np.arange(2 * MAX_MESSAGE_SLICES)
    sent = [batch(slices) for slices in (first, second, small, large)]
    decoded = decode(*sent, judge_lateness=False)
    assert counted(decoded) == sorted([*first, *second, *small, *first])
    assert [(*each.bodies, each.reports) for each in decoded.rejected] == [
        (batch_of_rows(large, MAX_MESSAGE_SLICES), MAX_MESSAGE_SLICES)
    ]


def batch_of_rows(slices: np.ndarray, start: int) -> bytes:
    """The data of the batch of the reports from ``start`` on."""
    ids = np.arange(2 * len(slices), dtype=np.uint64).reshape(-1, 2)[start:]
    times = START - slices[start:] * HOUR
    return encode_batch(*SYMBOL.key, ids, times, np.full(len(times), 3, np.uint32))


def test_times_that_are_refused_displace_no_report() -> None:
    slices = np.concatenate([np.arange(MAX_MESSAGE_SLICES), -1 - np.arange(3_000), YEAR // HOUR + 1 + np.arange(3_000)])
    decoded = decode(batch(slices), judge_lateness=False)
    assert counted(decoded) == [*range(MAX_MESSAGE_SLICES)]
    assert {each.reason: each.reports for each in decoded.rejected} == {Reason.TOO_EARLY: 3_000, Reason.EXPIRED: 3_000}


@pytest.mark.parametrize(
    ("key", "payload", "reason"),
    [
        (SYMBOL.key, 99, Reason.OUT_OF_DOMAIN),
        (BITS.key, 3, Reason.WRONG_PAYLOAD),
        (RETIRED.key, 3, Reason.RETIRED_VERSION),
    ],
)
def test_an_earlier_reason_stays_and_opens_no_more_windows(key: tuple[str, int], payload: int, reason: Reason) -> None:
    decoded = decode(batch(np.arange(4_000), key, payload=payload), judge_lateness=False)
    assert [(each.reason, each.reports) for each in decoded.rejected] == [(reason, 4_000)]
    assert len(accounting(decoded)) <= MAX_MESSAGE_SLICES
    assert sum(each.rejected for each in accounting(decoded).values()) == 4_000
