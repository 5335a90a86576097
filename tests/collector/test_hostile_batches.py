"""Batches with many reports that cannot be counted give no more bytes than they have; a message needs a valid time."""

import numpy as np
import pytest

from tests.build import HOUR, START
from tests.collector.decoding import BITS, SLIDING, SYMBOL, decode, outcomes, report
from uldp.collector.collections import YEAR_9000
from uldp.schemas.codec.encode import encode_batch
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message, ReportBatch

N = 5_000
#: Bytes around the columns of a batch: the header, collection, version and lengths.
FRAME = 64


def forged(rng: np.random.Generator, key: tuple[str, int], *, bits: bool) -> Message:
    """A batch with reports of every verdict that its collection knows, in a random order."""
    times = rng.choice([START, START + HOUR, START + 9 * HOUR, START - 400 * 24 * HOUR, -1, YEAR_9000], N)
    payloads = rng.integers(0, 256, (N, 2), np.uint8) if bits else rng.integers(0, 1 << 32, N, np.uint32)
    ids = rng.integers(0, 1 << 63, (N, 2), np.uint64)
    return Message(encode_batch(*key, ids, times.astype(np.int64), payloads), START + HOUR + HOUR // 2, {"a": "b"})


@pytest.mark.parametrize(("key", "bits"), [(SYMBOL.key, False), (SLIDING.key, False), (BITS.key, True)])
def test_records_of_a_forged_batch_are_no_larger_than_the_batch(key: tuple[str, int], bits: bool) -> None:
    message = forged(np.random.default_rng(1), key, bits=bits)
    decoded = decode(message)
    kept = [late.data for late in decoded.late] + [data for rejected in decoded.rejected for data in rejected.bodies]
    assert decoded.received == N
    assert len(kept) == len(decoded.late) + len({rejected.reason for rejected in decoded.rejected}) <= 6
    assert sum(map(len, kept)) <= len(message.data) + FRAME * len(kept)
    assert outcomes(decoded).total() == N


def test_a_batch_with_one_verdict_is_kept_as_it_came() -> None:
    ids, times, symbols = np.zeros((N, 2), np.uint64), np.full(N, -1), np.ones(N, np.uint32)
    message = Message(encode_batch(*SYMBOL.key, ids, times, symbols), START)
    (rejected,) = decode(message).rejected
    assert rejected.bodies[0] is message.data
    assert (rejected.reason, rejected.reports) == (Reason.INVALID_TIME, N)


@pytest.mark.parametrize("key", [("nobody", 1), (SYMBOL.key[0], 99)])
@pytest.mark.parametrize("n", [1, 3, N])
def test_a_batch_that_no_spec_explains_counts_the_reports_that_it_holds(key: tuple[str, int], n: int) -> None:
    ids, times, symbols = np.zeros((n, 2), np.uint64), np.full(n, START), np.ones(n, np.uint32)
    message = Message(encode_batch(*key, ids, times, symbols), START, source="s:1")
    decoded = decode(message, message._replace(source="s:2"))
    (rejected,) = decoded.rejected
    assert (decoded.received, rejected.reports, rejected.messages) == (2 * n, 2 * n, 2)


@pytest.mark.parametrize(
    ("ids", "times", "symbols"),
    [(16, 8 * N, 4 * N), (16 * N, 8, 4 * N), (16 * N, 8 * N + 1, 4 * N), (0, 0, 0), (0, 0, 4)],
)
def test_a_batch_that_claims_more_than_its_columns_hold_counts_as_one(ids: int, times: int, symbols: int) -> None:
    batch = ReportBatch("nobody", 1, bytes(ids), bytes(times), symbols=bytes(symbols))
    decoded = decode(Message(batch.encode(), START))
    assert (decoded.received, decoded.rejected_reports) == (1, 1)


@pytest.mark.parametrize("time", [-(2**63), -1, YEAR_9000, 2**63 - 1])
@pytest.mark.parametrize("judge_lateness", [True, False])
def test_a_message_without_a_valid_publish_time_is_rejected(time: int, judge_lateness: bool) -> None:
    good = Message(report(), START)
    decoded = decode(good, Message(report(), time), good, judge_lateness=judge_lateness)
    (rejected,) = decoded.rejected
    assert (decoded.received, sum(map(len, decoded.columns)), decoded.partials) == (3, 2, {})
    assert (rejected.reason, rejected.detail) == (Reason.INVALID_TIME, f"publish time {time}")
    assert rejected.publish_time == time
