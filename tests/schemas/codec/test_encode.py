"""The plain encoder is the reference: the columnar one must give its bytes, and both decoders must read them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import START
from uldp.schemas.arrays import Payloads, ReportIds, Times
from uldp.schemas.codec.columnar import Layout, report_schema
from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.codec.encode import encode_batch, encode_columns, encode_messages
from uldp.schemas.framing import report_store
from uldp.schemas.records import Message, Report

KEY = ("check-ins", 3)
MAX_INT, MAX_LONG = 2**31 - 1, 2**63 - 1

# Where varints grow by a byte, for a zigzag value is odd where the long is negative.
edges = st.sampled_from([edge for width in range(1, 10) for edge in (-(2 ** (7 * width - 1)), 2 ** (7 * width - 1))])
times = st.integers(-MAX_LONG - 1, MAX_LONG) | st.integers(START, START + 10**7) | edges
# Each width of a varint, from one byte to five.
symbols = st.integers(0, 5).flatmap(lambda width: st.integers(0, min(2 ** (7 * width), MAX_INT)))


def layout(width: int | None) -> Layout:
    return Layout.of(report_schema(), *KEY, width)


def random_ids(n: int, seed: int = 0) -> ReportIds:
    return np.random.default_rng(seed).integers(0, 2**64, (n, 2), dtype=np.uint64)


def plainly_encoded(ids: ReportIds, event_times: Times, payloads: Payloads) -> list[bytes]:
    return [
        Report(*KEY, report_id.tobytes(), int(time), int(payload) if payloads.ndim == 1 else payload.tobytes()).encode()
        for report_id, time, payload in zip(ids, event_times, payloads, strict=True)
    ]


@given(st.lists(st.tuples(times, symbols, times), max_size=40), st.none() | st.integers(1, 150), st.integers(0, 2**32))
def test_reports_and_messages_are_encoded_as_the_plain_encoders_do(
    rows: list[tuple[int, int, int]], width: int | None, seed: int
) -> None:
    event_times, published = (np.array([row[column] for row in rows], dtype=np.int64) for column in (0, 2))
    payloads: Payloads
    if width is None:
        payloads = np.array([symbol for _, symbol, _ in rows], dtype=np.uint32)
    else:
        payloads = np.random.default_rng(seed).integers(0, 256, (len(rows), width), dtype=np.uint8)
        payloads[::2, -1] = 0  # a zero at the end of a message is kept
    ids = random_ids(len(rows), seed)
    assert encode_columns(layout(width), ids, event_times, payloads) == plainly_encoded(ids, event_times, payloads)
    encoded = encode_messages(layout(width), ids, event_times, payloads, published)
    plainly = EncodedMessages.of(map(Message, plainly_encoded(ids, event_times, payloads), published.tolist()))
    for column in ("buffer", "ends", "publish_times"):
        np.testing.assert_array_equal(getattr(encoded, column), getattr(plainly, column))


@pytest.mark.parametrize(
    ("width", "payloads"),
    [
        (None, np.array([0, MAX_INT + 1], dtype=np.uint32)),
        (None, np.zeros((2, 1), dtype=np.uint8)),
        (None, np.zeros(3, dtype=np.uint32)),
        (4, np.zeros((2, 3), dtype=np.uint8)),
        (4, np.zeros((2, 1), dtype=np.uint8)),
        (4, np.zeros(2, dtype=np.uint32)),
    ],
)
def test_payloads_that_do_not_fit_the_layout_are_an_error(width: int | None, payloads: Payloads) -> None:
    with pytest.raises(ValueError, match=r"payloads of shape"):
        encode_columns(layout(width), random_ids(2), np.array([START, START]), payloads)


@pytest.mark.parametrize(
    ("kind", "payloads"),
    [
        ("symbols", np.array([0, 624, 3], dtype=np.uint32)),
        ("bits", np.array([[1, 128], [0, 0], [255, 0]], dtype=np.uint8)),
    ],
)
def test_a_batch_holds_the_columns(kind: str, payloads: Payloads) -> None:
    ids, event_times = random_ids(3), np.array([START, -1, MAX_LONG])
    name, record = report_store().decode(encode_batch(*KEY, ids, event_times, payloads))
    assert name == "uldp.ReportBatch"
    assert (record["collection"], record["version"]) == KEY
    np.testing.assert_array_equal(np.frombuffer(record["report_ids"], np.uint64).reshape(-1, 2), ids)
    np.testing.assert_array_equal(np.frombuffer(record["event_times"], "<i8"), event_times)
    np.testing.assert_array_equal(
        np.frombuffer(record["payload"][kind], payloads.dtype).reshape(payloads.shape), payloads
    )


def test_a_batch_of_columns_of_different_lengths_is_an_error() -> None:
    with pytest.raises(ValueError, match="columns differ in length: 3 ids, 2 times and 3 payloads"):
        encode_batch(*KEY, random_ids(3), np.array([START, START]), np.zeros(3, dtype=np.uint32))
