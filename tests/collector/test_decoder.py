"""The decoder against a judge that looks at one report at a time, and each reason against a message that earns it."""

import math
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uldp.collector.collections import AMENDABLE_FOR, YEAR_10000
from uldp.collector.decoder import KEPT_BYTES, MAX_MESSAGE_BYTES, Decoded, ReportDecoder
from uldp.collector.signals import sender_digest
from uldp.schemas.codec import columnar
from uldp.schemas.codec.batched import BatchViews
from uldp.schemas.collection import CollectionSpec
from uldp.schemas.durations import milliseconds
from uldp.schemas.framing import HEADER_SIZE, header, load_schema, report_store
from uldp.schemas.reasons import Reason
from uldp.schemas.records import SENDER, SKEW_RANGES, Accounting, Message, Rejected, Report, ReportBatch

START = 1_767_258_000_000  # 2026-01-01T09:00:00Z
MINUTE, HOUR = 60_000, 3_600_000
YEAR = 365 * 24 * HOUR
ID = bytes(range(16))


def spec(collection: str, version: int, mechanism: str, **keys: object) -> CollectionSpec:
    base: dict[str, object] = {
        "collection": collection,
        "version": version,
        "domain": {"size": 10},
        "mechanism": {"name": mechanism, "epsilon": 1.0},
        "sensitive": [0, 1, 2],
        "window": {"size": "1h", "allowed_lateness": "30m"},
    }
    return CollectionSpec.parse(base | keys)


SYMBOL = spec("symbol", 1, "urr", tags=[{"name": "home"}])  # 11 symbols
BITS = spec("bits", 1, "urap")  # 10 bits in 2 bytes
UPGRADED = spec("symbol", 2, "urap")
SLIDING = spec(
    "sliding", 1, "rr", sensitive="all", window={"size": "1h", "period": "15m"}, limits={"max_clock_skew": "0s"}
)
RETIRED = spec("symbol", 7, "urr", retired=True)
YOUNG = spec("young", 1, "urr", limits={"max_age": "2h"})
SPECS = {spec.key: spec for spec in (SYMBOL, BITS, UPGRADED, SLIDING, RETIRED, YOUNG)}

#: Sensitive bits 0 to 2 at will, one more at the most, and six bits of padding.
POSSIBLE_BITS = [b"\0\0", b"\xe0\0", b"\x80\x40", b"\x10\0"]
IMPOSSIBLE_BITS = [b"\x18\0", b"\x10\x80", b"\0\x20", b"\0\x01"]


def take_path(patch: pytest.MonkeyPatch, min_rows: float) -> None:
    """Decode ``min_rows`` messages or more as columns and batches in place, or all by the plain decoder."""
    patch.setattr(columnar, "MIN_ROWS", min_rows)
    if min_rows == math.inf:
        patch.setattr(BatchViews, "read", leave)


def leave(batches: BatchViews, message: bytes) -> None:
    return None


@pytest.fixture(params=["columnar", "plain"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send even a single message by the fast paths, or all through the plain decoder."""
    take_path(monkeypatch, 1 if request.param == "columnar" else math.inf)


both_paths = pytest.mark.usefixtures("path")


def decode(*messages: Message, judge_lateness: bool = True) -> Decoded:
    return ReportDecoder(SPECS.values(), judge_lateness=judge_lateness).decode(messages)


def report(payload: int | bytes = 3, time: int = START, key: tuple[str, int] = SYMBOL.key, id_: bytes = ID) -> bytes:
    return Report(*key, id_, time, payload).encode()


def batch(reports: Sequence[Report]) -> ReportBatch:
    """Reports of one collection and version and of one kind of payload."""
    times = np.array([report.event_time for report in reports], dtype=np.int64).tobytes()
    ids = b"".join(report.report_id for report in reports)
    if isinstance(reports[0].payload, int):
        symbols = np.array([report.payload for report in reports], dtype=np.uint32).tobytes()
        return ReportBatch(reports[0].collection, reports[0].version, ids, times, symbols=symbols)
    bits = b"".join(report.payload for report in reports if isinstance(report.payload, bytes))
    return ReportBatch(reports[0].collection, reports[0].version, ids, times, bits=bits)


def accounting(decoded: Decoded) -> dict[tuple[tuple[str, int], int], Accounting]:
    """The accounting of late and rejected reports by collection, version and slice."""
    found = {slot: partial.accounting for slot, partial in decoded.partials.items()}
    return {slot: line for slot, line in found.items() if line != Accounting()}


def key_of(data: bytes) -> tuple[str, int] | None:
    """The collection and version that a message names."""
    try:
        record = report_store().decode(data)[1]
    except ValueError:
        return None
    return record["collection"], record["version"]


class Outcome(NamedTuple):
    """Where a report went: counted, late, or the reason; and the time slice in whose accounting it stands."""

    where: str
    slice_start: int | None = None


def judge(report: Report, published: int) -> Outcome:
    """What must become of a report, rule by rule."""
    key = report.collection, report.version
    if key not in SPECS:
        known = report.collection in {collection for collection, _ in SPECS}
        return Outcome(Reason.UNKNOWN_VERSION if known else Reason.UNKNOWN_COLLECTION)
    spec, time = SPECS[key], report.event_time
    slice_size = milliseconds(spec.window.period or spec.window.size)
    named, published_in = time - time % slice_size, published - published % slice_size
    if spec.retired:
        return Outcome(Reason.RETIRED_VERSION, published_in)
    if time < 0 or time >= YEAR_10000:
        refusal = Reason.INVALID_TIME
    elif time > published + milliseconds(spec.limits.max_clock_skew):
        refusal = Reason.TOO_EARLY
    elif time < published - (2 * HOUR if spec is YOUNG else YEAR):
        refusal = Reason.EXPIRED
    else:
        refusal = None
    closed = named + milliseconds(spec.window.size + spec.window.allowed_lateness)
    amendable = published < closed + milliseconds(AMENDABLE_FOR)
    slice_start = named if refusal is None and amendable else published_in
    size = spec.size + len(spec.tags)
    if isinstance(report.payload, bytes) != spec.mechanism.reports_bits:
        return Outcome(Reason.WRONG_PAYLOAD, slice_start)
    if isinstance(report.payload, bytes):
        if len(report.payload) != math.ceil(size / 8):
            return Outcome(Reason.WRONG_LENGTH, slice_start)
        bits = "".join(f"{byte:08b}" for byte in report.payload)
        ones = sum(bit == "1" for bit, sensitive in zip(bits, spec.sensitive_mask, strict=False) if not sensitive)
        impossible = Reason.IMPOSSIBLE_BITS if ones > 1 or "1" in bits[size:] else None
    else:
        if report.payload < 0:
            return Outcome(Reason.OUT_OF_DOMAIN, slice_start)
        impossible = Reason.OUT_OF_DOMAIN if report.payload >= size else None
    if refusal is not None:
        return Outcome(refusal, slice_start)
    if impossible is not None:
        return Outcome(impossible, slice_start)
    return Outcome("late" if published >= closed else "counted", slice_start)


def row_of(batch: dict[str, Any]) -> Report | None:
    """The only report of a batch of symbols; there is none where columns do not fit each other."""
    ids, times, symbols = batch["report_ids"], batch["event_times"], batch["payload"].get("symbols", b"")
    if (len(ids), len(times), len(symbols)) != (16, 8, 4):
        return None
    time, symbol = struct.unpack("<q", times)[0], struct.unpack("<I", symbols)[0]
    return Report(batch["collection"], batch["version"], ids, time, symbol)


def outcomes(decoded: Decoded) -> Counter[tuple[Report | bytes, str]]:
    """Each report and where it went. A counted one is dated to its slice; what does not decode stands for itself."""
    found: Counter[tuple[Report | bytes, str]] = Counter()
    for columns in decoded.columns:
        bits = columns.payloads.ndim == 2
        for row in range(len(columns)):
            id_, slice_start = columns.report_ids[row].tobytes(), int(columns.slices[row])
            payload = columns.payloads[row].tobytes() if bits else int(columns.payloads[row])
            found[Report(columns.collection, columns.version, id_, slice_start, payload), "counted"] += 1
    found.update((Report(**report_store().decode(late.data)[1]), "late") for late in decoded.late)
    for rejected in decoded.rejected:
        try:
            name, record = report_store().decode(rejected.data)
        except ValueError:
            found[rejected.data, rejected.reason] += 1
        else:
            report = Report(**record) if name == "uldp.Report" else row_of(record)
            found[report or rejected.data, rejected.reason] += 1
    return found


# Each reason.

CASES: list[tuple[Reason, bytes, str]] = [
    (Reason.NOT_AVRO, b"", "starts with nothing, not c301"),
    (Reason.NOT_AVRO, b'{"a": 1}', "starts with 7b22, not c301"),
    (Reason.UNKNOWN_SCHEMA, header(load_schema("message")) + b"\0\0\0", "fingerprint c6bb28b27986b4f9"),
    (Reason.TRUNCATED, report()[:-1], f"{len(report()) - 1} bytes end inside the body"),
    (Reason.MALFORMED, report() + b"\0", "1 bytes follow the body"),
    (
        Reason.MALFORMED,
        ReportBatch(*SYMBOL.key, ID, bytes(8), symbols=bytes(3)).encode(),
        "16 bytes of ids, 8 of times and 3 of symbols",
    ),
    (
        Reason.MALFORMED,
        ReportBatch(*SYMBOL.key, ID, bytes(9), symbols=bytes(4)).encode(),
        "16 bytes of ids, 9 of times",
    ),
    (Reason.MALFORMED, ReportBatch(*SYMBOL.key, ID * 2, bytes(8), symbols=bytes(4)).encode(), "32 bytes of ids"),
    (Reason.MALFORMED, ReportBatch(*BITS.key, ID * 2, bytes(16), bits=bytes(5)).encode(), "5 of bits"),
    (Reason.TOO_LARGE, report() + bytes(MAX_MESSAGE_BYTES), f"the limit is {MAX_MESSAGE_BYTES}"),
    (Reason.UNKNOWN_COLLECTION, report(key=("nobody", 1)), "'nobody' version 1"),
    (Reason.UNKNOWN_COLLECTION, report(key=("x" * 1000, 1)), f"'{'x' * 64}' version 1"),
    (Reason.UNKNOWN_VERSION, report(key=("symbol", 3)), "'symbol' version 3"),
    (Reason.UNKNOWN_VERSION, ReportBatch("bits", 9, b"", b"", bits=b"").encode(), "'bits' version 9"),
    (Reason.RETIRED_VERSION, report(key=RETIRED.key), "'symbol' version 7"),
    (Reason.WRONG_PAYLOAD, report(b"\0\0"), "2 bytes of bits, but urr reports a symbol"),
    (Reason.WRONG_PAYLOAD, report(3, key=BITS.key), "a symbol, but urap reports bits"),
    (Reason.WRONG_PAYLOAD, report(b"\0\0", START + HOUR), "2 bytes of bits, but urr reports a symbol"),
    (Reason.WRONG_LENGTH, report(b"\0", key=BITS.key), "1 bytes of bits, not 2"),
    (Reason.WRONG_LENGTH, report(b"\0\0\0", key=BITS.key), "3 bytes of bits, not 2"),
    (Reason.OUT_OF_DOMAIN, report(11), "symbol 11 of 11"),
    (Reason.OUT_OF_DOMAIN, report(2**31 - 1), f"symbol {2**31 - 1} of 11"),
    (Reason.OUT_OF_DOMAIN, report(-1), "symbol -1 of 11"),
    *((Reason.IMPOSSIBLE_BITS, report(bits, key=BITS.key), "not an output of urap") for bits in IMPOSSIBLE_BITS),
    (Reason.INVALID_TIME, report(time=-1), "event time -1"),
    (Reason.INVALID_TIME, report(time=YEAR_10000), f"event time {YEAR_10000}"),
    (Reason.INVALID_TIME, report(11, time=YEAR_10000), f"event time {YEAR_10000}"),
    (Reason.TOO_EARLY, report(time=START + 10 * MINUTE + 1), "600001 ms ahead"),
    (Reason.INVALID_TIME, report(time=START * 1000), f"event time {START}000; it looks like microseconds since 1970"),
    (Reason.INVALID_TIME, report(time=START * 10**6 + 1), "it looks like nanoseconds since 1970, and must be milli"),
    (Reason.EXPIRED, report(time=START - YEAR - 1), f"{YEAR + 1} ms before the stream's clock"),
    (Reason.EXPIRED, report(time=START // 1000), "it looks like seconds since 1970, and must be milliseconds"),
    (Reason.EXPIRED, report(time=START // 1000, key=YOUNG.key), "it looks like seconds since 1970"),
    (Reason.EXPIRED, report(time=START - 2 * HOUR - 1, key=YOUNG.key), "7200001 ms before"),
    (Reason.EXPIRED, report(99, time=START - 3 * HOUR, key=YOUNG.key), "10800000 ms before"),
    (Reason.WRONG_PAYLOAD, report(b"\0\0", START - 3 * HOUR, key=YOUNG.key), "bits, but urr"),
    (Reason.TOO_EARLY, report(11, time=START + 10 * MINUTE + 1), "600001 ms ahead"),
]


@pytest.mark.parametrize(
    ("time", "reason", "detail"),
    [
        (START - 3 * HOUR, Reason.EXPIRED, f"event time is {3 * HOUR} ms before the stream's clock"),
        (START // 1000 - 3 * 3600, Reason.EXPIRED, f"event time is {START - START // 1000 + 10_800} ms before the"),
        (0, Reason.EXPIRED, f"event time is {START} ms before the stream's clock"),
        (-1, Reason.INVALID_TIME, "event time -1"),
        (-(1 << 63), Reason.INVALID_TIME, f"event time {-(1 << 63)}"),
        ((1 << 63) - 1, Reason.INVALID_TIME, f"event time {(1 << 63) - 1}"),
    ],
)
def test_a_time_that_no_other_unit_makes_right_is_of_no_other_unit(time: int, reason: Reason, detail: str) -> None:
    (rejected,) = decode(Message(report(time=time, key=YOUNG.key), START)).rejected
    assert rejected.reason is reason
    assert rejected.detail.startswith(detail)
    assert "looks like" not in rejected.detail


def test_the_age_of_a_report_is_judged_by_when_it_was_published() -> None:
    old = START - 20 * YEAR  # of an archive
    for judge_lateness in (False, True):
        decoded = decode(Message(report(time=old), old + 5), judge_lateness=judge_lateness)
        assert [len(columns) for columns in decoded.columns] == [1]


def test_there_is_a_case_of_every_reason() -> None:
    assert {reason for reason, _, _ in CASES} == set(Reason)


@both_paths
@pytest.mark.parametrize(("reason", "data", "detail"), CASES, ids=lambda value: str(value)[:24])
def test_each_reason(reason: Reason, data: bytes, detail: str) -> None:
    message = Message(data, START, {"k": "v"}, "segment:7")
    decoded = decode(message)
    (rejected,) = decoded.rejected
    assert detail in rejected.detail
    assert rejected == Rejected(
        stage="decode",
        reason=reason,
        detail=rejected.detail,
        data=data[:KEPT_BYTES] if reason is Reason.TOO_LARGE else data,
        attributes={"k": "v"},
        publish_time=START,
        source="segment:7",
        attempt=1,
        software=metadata.version("uldp-stream"),
    )
    assert (decoded.received, decoded.columns, decoded.late) == (1, [], [])
    lines = {(key, START): Accounting(received=1, rejected=1) for key in [key_of(data)] if key in SPECS}
    assert accounting(decoded) == lines


def test_a_message_of_the_greatest_size_is_looked_at() -> None:
    (rejected,) = decode(Message(bytes(MAX_MESSAGE_BYTES), START)).rejected
    assert rejected.reason is Reason.NOT_AVRO
    assert len(rejected.data) == MAX_MESSAGE_BYTES


# What is counted.


@both_paths
def test_columns_hold_what_the_report_said() -> None:
    sent = [
        Report(*SYMBOL.key, ID, START + 59 * MINUTE, 10),
        Report(*SYMBOL.key, ID[::-1], START, 0),
        Report(*SLIDING.key, ID, START + 29 * MINUTE, 9),
        Report(*BITS.key, ID, START, b"\xe0\x40"),
    ]
    decoded = decode(*(Message(report.encode(), START + HOUR) for report in sent))
    assert (decoded.received, decoded.late, decoded.rejected, accounting(decoded)) == (4, [], [], {})
    of = {(columns.collection, columns.version): columns for columns in decoded.columns}
    assert sum(len(columns) for columns in decoded.columns) == 4
    assert of[SYMBOL.key].slices.tolist() == [START, START]
    assert of[SYMBOL.key].payloads.tolist() == [10, 0]
    assert of[SYMBOL.key].payloads.dtype == np.uint32
    assert of[SYMBOL.key].report_ids.tobytes() == ID + ID[::-1]
    assert of[SLIDING.key].slices.tolist() == [START + 15 * MINUTE]
    assert of[BITS.key].payloads.tolist() == [[0xE0, 0x40]]
    assert of[BITS.key].payloads.dtype == np.uint8


@both_paths
@pytest.mark.parametrize("bits", POSSIBLE_BITS, ids=bytes.hex)
def test_possible_bits_are_counted(bits: bytes) -> None:
    assert sum(len(columns) for columns in decode(Message(report(bits, key=BITS.key), START)).columns) == 1


def test_nothing_becomes_nothing() -> None:
    assert decode() == Decoded()
    empty = decode(Message(ReportBatch(*SYMBOL.key, b"", b"", symbols=b"").encode(), START))
    assert (empty.received, sum(map(len, empty.columns)), empty.late, empty.rejected) == (0, 0, [], [])


# Lateness.

CLOSING = [
    (SYMBOL, START, HOUR + 30 * MINUTE),
    (SYMBOL, START + HOUR - 1, HOUR + 30 * MINUTE),
    (SLIDING, START, HOUR),
    (SLIDING, START + 15 * MINUTE - 1, HOUR),
    (SLIDING, START + 15 * MINUTE, 15 * MINUTE + HOUR),
]


@both_paths
@pytest.mark.parametrize(("spec", "time", "closes"), CLOSING)
def test_a_report_is_late_from_the_moment_when_its_last_window_closes(
    spec: CollectionSpec, time: int, closes: int
) -> None:
    data = report(3, time, spec.key)
    in_time = decode(Message(data, START + closes - 1, {"k": "v"}, "s:1"))
    assert (sum(map(len, in_time.columns)), in_time.late, accounting(in_time)) == (1, [], {})
    late = decode(Message(data, START + closes, {"k": "v"}, "s:1"))
    assert late.late == [Message(data, START + closes, {"k": "v"}, "s:1")]
    assert (late.received, late.columns, late.rejected) == (1, [], [])
    slice_size = milliseconds(spec.window.period or spec.window.size)
    assert accounting(late) == {(spec.key, time - time % slice_size): Accounting(received=1, late=1)}


@both_paths
@pytest.mark.parametrize(("spec", "time", "closes"), CLOSING)
def test_nothing_is_late_in_a_bounded_job(spec: CollectionSpec, time: int, closes: int) -> None:
    decoded = decode(Message(report(3, time, spec.key), START + closes + 1000 * HOUR), judge_lateness=False)
    assert (sum(map(len, decoded.columns)), decoded.late, accounting(decoded)) == (1, [], {})


@both_paths
@pytest.mark.parametrize(("spec", "skew"), [(SYMBOL, 10 * MINUTE), (SLIDING, 0)])
def test_a_clock_may_be_ahead_by_the_allowed_skew(spec: CollectionSpec, skew: int) -> None:
    decoded = decode(
        Message(report(3, START + skew, spec.key), START), Message(report(3, START + skew + 1, spec.key), START)
    )
    assert sum(map(len, decoded.columns)) == 1
    assert [rejected.reason for rejected in decoded.rejected] == [Reason.TOO_EARLY]


# Batches.


@pytest.mark.parametrize(
    ("key", "good", "bad", "impossible"),
    [
        (SYMBOL.key, 3, 11, Reason.OUT_OF_DOMAIN),
        (BITS.key, b"\x80\x40", b"\x18\0", Reason.IMPOSSIBLE_BITS),
    ],
    ids=["symbols", "bits"],
)
def test_what_is_late_or_rejected_of_a_batch_can_be_sent_again_alone(
    key: tuple[str, int], good: int | bytes, bad: int | bytes, impossible: Reason
) -> None:
    published = START + HOUR + 30 * MINUTE
    sent = [
        Report(*key, bytes([row]) * 16, time, payload)
        for row, (time, payload) in enumerate(
            [(START, good), (START + HOUR, good), (START + HOUR, bad), (-5, good), (START, bad)]
        )
    ]
    decoded = decode(Message(batch(sent).encode(), published, {"k": "v"}, "s:1"))
    assert decoded.received == 5
    assert [columns.report_ids.tobytes() for columns in decoded.columns] == [sent[1].report_id]
    assert decoded.late == [Message(sent[0].encode(), published, {"k": "v"}, "s:1")]
    assert {rejected.data: rejected.reason for rejected in decoded.rejected} == {
        sent[2].encode(): impossible,
        sent[3].encode(): Reason.INVALID_TIME,
        sent[4].encode(): impossible,
    }
    assert {(rejected.publish_time, rejected.source) for rejected in decoded.rejected} == {(published, "s:1")}
    alone = decode(*decoded.late, *(Message(rejected.data, published) for rejected in decoded.rejected))
    assert accounting(alone) == accounting(decoded)
    assert outcomes(alone) + Counter({(sent[1], "counted"): 1}) == outcomes(decoded)


@pytest.mark.parametrize("symbol", [11, 2**31 - 1, 2**31, 2**32 - 1])
def test_a_symbol_that_only_a_batch_can_hold_is_rejected_like_any_other(symbol: int) -> None:
    sent = batch([Report(*SYMBOL.key, ID, START, 3), Report(*SYMBOL.key, ID[::-1], START, symbol)])
    decoded = decode(Message(sent.encode(), START))
    assert sum(map(len, decoded.columns)) == 1
    (rejected,) = decoded.rejected
    assert rejected.reason is Reason.OUT_OF_DOMAIN
    assert rejected.detail == f"symbol {symbol} of 11"
    again = decode(Message(rejected.data, START))
    assert (again.received, again.columns, again.rejected) == (1, [], [rejected])


# Signals.


@both_paths
def test_senders_are_counted_by_report_where_a_spec_asks() -> None:
    asked = spec("symbol", 1, "urr", limits={"max_reports_per_sender": 5})
    sent = batch([Report(*asked.key, bytes([row]) * 16, START + row * HOUR // 2, 3) for row in range(4)]).encode()
    messages = [
        Message(sent, START + 2 * HOUR, {SENDER: "gateway"}),
        Message(report(3), START + 2 * HOUR, {SENDER: "gateway"}),
        Message(report(99), START + 2 * HOUR, {SENDER: "phone"}),  # rejected, and received from it all the same
        Message(report(3, id_=ID[::-1]), START + 2 * HOUR),
        Message(report(3, key=BITS.key), START + 2 * HOUR, {SENDER: "gateway"}),
    ]
    decoded = ReportDecoder([asked, BITS], judge_lateness=False).decode(messages)
    found = {}
    for slot, partial in decoded.partials.items():
        if (senders := partial.signals.senders) is not None:
            found[slot] = dict(zip(senders.digests.tolist(), senders.reports.tolist(), strict=True))
    gateway, phone = sender_digest("gateway"), sender_digest("phone")
    assert found == {(asked.key, START): {gateway: 3, phone: 1}, (asked.key, START + HOUR): {gateway: 2}}


@both_paths
def test_skew_travels_with_what_may_be_counted_and_stands_with_what_may_not() -> None:
    published = START + 30 * MINUTE
    decoded = decode(
        Message(report(3), published),
        Message(report(3, time=published + 5 * MINUTE), published),
        Message(report(3, time=published + 30 * MINUTE), published),
    )
    (columns,) = decoded.columns
    half_an_hour, five_minutes = 11, 9  # doublings of a second
    assert columns.signals.tolist() == [half_an_hour, SKEW_RANGES + five_minutes]
    signals = decoded.partials[SYMBOL.key, START].signals.published()
    assert (signals.past, signals.early) == ((), (*[0] * half_an_hour, 1))


# Laws.

TIMES = st.sampled_from(
    [-1, 0, YEAR_10000 - 1, YEAR_10000, 2**63 - 1, -(2**63)]
    + [START + offset for offset in (-1, 0, 14 * MINUTE, HOUR - 1, HOUR, HOUR + 10 * MINUTE, HOUR + 10 * MINUTE + 1)]
) | st.integers(START - 2 * HOUR, START + 2 * HOUR)
PUBLISHED = st.sampled_from(
    [START + HOUR, START + HOUR + 30 * MINUTE, START + HOUR + 30 * MINUTE - 1, START + 75 * MINUTE]
)
KEYS = st.sampled_from([*SPECS, *SPECS, *SPECS, ("symbol", 3), ("nobody", 1)])
IDS = st.integers(0, 3).map(lambda number: number.to_bytes(16, "little"))
SYMBOLS = st.integers(0, 12) | st.sampled_from([-1, 2**28, 2**31 - 1])
PACKED = st.sampled_from([*POSSIBLE_BITS, *IMPOSSIBLE_BITS])
OTHERS = st.sampled_from([b"", b"\0", b"\0\0\0"])


@st.composite
def reports(draw: st.DrawFn) -> Report:
    key = draw(KEYS)
    bits = key in SPECS and SPECS[key].mechanism.reports_bits
    payloads = (PACKED | PACKED | OTHERS | SYMBOLS) if bits else (SYMBOLS | SYMBOLS | OTHERS | PACKED)
    return Report(*key, draw(IDS), draw(TIMES), draw(payloads))


@st.composite
def batches(draw: st.DrawFn) -> list[Report]:
    key = draw(st.sampled_from(list(SPECS)))
    payloads: st.SearchStrategy[int | bytes] = st.integers(0, 12) | st.sampled_from([2**31 - 1, 2**31, 2**32 - 1])
    if SPECS[key].mechanism.reports_bits:
        payloads = PACKED
    return [
        Report(*key, draw(IDS), draw(TIMES), payload) for payload in draw(st.lists(payloads, min_size=1, max_size=6))
    ]


#: A report, those of a batch, or bytes that are neither; and when they were published.
Arrival = tuple[Report | list[Report] | bytes, int]
JUNK = (
    st.binary(max_size=12)
    | st.builds(lambda report, cut: report.encode()[:cut], reports(), st.integers(0, 24))
    | st.builds(lambda report, tail: report.encode() + tail, reports(), st.binary(min_size=1, max_size=3))
)
ARRIVALS = st.lists(st.tuples(reports() | batches() | JUNK, PUBLISHED), max_size=8)


def as_message(arrival: Arrival) -> Message:
    content, published = arrival
    match content:
        case Report():
            return Message(content.encode(), published)
        case list():
            return Message(batch(content).encode(), published)
        case _:
            return Message(content, published)


def judged(arrivals: Sequence[Arrival]) -> Iterator[tuple[Report, Outcome]]:
    for content, published in arrivals:
        if not isinstance(content, bytes):
            for report in content if isinstance(content, list) else [content]:
                yield report, judge(report, published)


@pytest.fixture(scope="module", params=[1, 4, math.inf], ids=["columnar", "mixed", "plain"])
def min_rows(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        take_path(patch, request.param)
        yield


@pytest.mark.usefixtures("min_rows")
@given(ARRIVALS)
def test_every_report_goes_where_the_rules_send_it(arrivals: list[Arrival]) -> None:
    decoded = decode(*map(as_message, arrivals))
    wanted: Counter[tuple[Report | bytes, str]] = Counter()
    lines: Counter[tuple[tuple[str, int], int, str]] = Counter()
    for report, (where, slice_start) in judged(arrivals):
        if where == "counted":
            assert slice_start is not None
            wanted[replace(report, event_time=slice_start), where] += 1
        else:
            wanted[report, where] += 1
            if slice_start is not None:
                lines[(report.collection, report.version), slice_start, "late" if where == "late" else "rejected"] += 1
    found = outcomes(decoded)
    junk = Counter(content for content, _ in arrivals if isinstance(content, bytes))
    assert Counter({sent: n for sent, n in found.items() if sent[0] not in junk}) == wanted
    assert found.total() == wanted.total() + junk.total()
    assert accounting(decoded) == {
        (key, start): Accounting(
            received=lines[key, start, "late"] + lines[key, start, "rejected"],
            late=lines[key, start, "late"],
            rejected=lines[key, start, "rejected"],
        )
        for key, start, _ in lines
    }


@pytest.mark.usefixtures("min_rows")
@given(ARRIVALS)
def test_accounting_closes_call_by_call(arrivals: list[Arrival]) -> None:
    decoded = decode(*map(as_message, arrivals))
    assert decoded.received == sum(len(content) if isinstance(content, list) else 1 for content, _ in arrivals)
    assert decoded.received == sum(map(len, decoded.columns)) + len(decoded.late) + len(decoded.rejected)
    assert all(line.closes() for line in accounting(decoded).values())


@pytest.mark.usefixtures("min_rows")
@given(ARRIVALS)
def test_neither_order_nor_company_decides(arrivals: list[Arrival]) -> None:
    messages = [as_message(arrival) for arrival in arrivals]
    together = decode(*messages)
    alone = [decode(message) for message in reversed(messages)]
    assert sum((outcomes(decoded) for decoded in alone), Counter()) == outcomes(together)
    lines: Counter[tuple[tuple[str, int], int]] = Counter()
    for decoded in alone:
        lines.update({slot: line.received for slot, line in accounting(decoded).items()})
    assert lines == {slot: line.received for slot, line in accounting(together).items()}


@pytest.mark.usefixtures("min_rows")
@given(
    st.lists(
        st.binary(max_size=80)
        | st.builds(
            lambda head, body: head + body, st.sampled_from(list(report_store().writers)), st.binary(max_size=80)
        )
        | st.builds(
            lambda data, at, byte: data[: at % len(data)] + bytes([byte]) + data[at % len(data) + 1 :],
            (reports() | batches().map(batch)).map(lambda sent: sent.encode()),
            st.integers(HEADER_SIZE, 200),
            st.integers(0, 255),
        ),
        max_size=8,
    )
)
def test_no_bytes_raise(data: list[bytes]) -> None:
    decoded = decode(*(Message(one, START) for one in data))
    assert decoded.received == sum(map(len, decoded.columns)) + len(decoded.late) + len(decoded.rejected)
    assert all(line.closes() for line in accounting(decoded).values())
