"""Each reason to reject a report, against a message that earns it."""

import base64
import gzip
import zlib
from importlib import metadata

import pytest

from tests.build import HOUR, MINUTE, START
from tests.collector.decoding import (
    BITS,
    ID,
    IMPOSSIBLE_PAYLOAD,
    RETIRED,
    SPECS,
    SYMBOL,
    YEAR,
    YOUNG,
    accounting,
    both_paths,
    decode,
    report,
)
from uldp.collector.batch import STORED_BYTES
from uldp.collector.collections import YEAR_9000
from uldp.collector.plain_decoder import MAX_MESSAGE_BYTES
from uldp.schemas.framing import HEADER_SIZE, MAGIC, header, load_schema, report_store
from uldp.schemas.pane import Accounting
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message, ReportBatch
from uldp.schemas.rejected import Rejected


def key_of(data: bytes) -> tuple[str, int] | None:
    """The collection and version that a message names."""
    try:
        record = report_store().decode(data)[1]
    except ValueError:
        return None
    return record["collection"], record["version"]


CASES: list[tuple[Reason, bytes, str]] = [
    (Reason.NOT_AVRO, b"", "starts with nothing, not c301"),
    (Reason.NOT_AVRO, MAGIC + b"1234567", "9 bytes end inside the header, which has 10"),
    *(
        (Reason.NOT_AVRO, data, f"; it looks like {words}")
        for data, words in {
            b'{"a": 1}': "JSON; send Avro's binary encoding",
            b"Obj\x01" + report(): "an Avro container file; send each of its records as a message",
            gzip.compress(
                report(), mtime=0
            ): "gzip compression; send the bytes as they were, and let the transport compress",
            zlib.compress(report()): "zlib compression; send the bytes as they were, and let the transport compress",
            b"\x28\xb5\x2f\xfd" + bytes(9): "zstandard compression;",
            base64.b64encode(report()): "a message as text in base64; send its bytes",
            report().hex().encode(): "a message as text in hexadecimal; send its bytes",
            report()[HEADER_SIZE:]: "a body without its header; send the 10 bytes of the header first",
        }.items()
    ),
    (Reason.REGISTRY_FRAMING, b"\0\0\0\0\x07" + report()[HEADER_SIZE:], "00 and the schema id 7 of 4 bytes"),
    (Reason.REGISTRY_FRAMING, b"\0" + bytes(7) + b"\x07" + report()[HEADER_SIZE:], "00 and the schema id 7 of 8 bytes"),
    (Reason.NOT_AVRO, bytes(500), "starts with 0000, not c301"),
    (Reason.UNKNOWN_SCHEMA, header(load_schema("message")) + b"\0\0\0", "fingerprint c6bb28b27986b4f9"),
    (Reason.TRUNCATED, report()[:-1], f"{len(report()) - 1} bytes end inside the body"),
    (Reason.MALFORMED, report() + b"\0", "1 bytes follow the body"),
    (
        Reason.MALFORMED,
        ReportBatch(*SYMBOL.key, ID, bytes(8), symbols=bytes(3)).encode(),
        "16 bytes of ids, 8 of times and 3 of symbols",
    ),
    (Reason.MALFORMED, ReportBatch(*BITS.key, ID * 2, bytes(16), bits=bytes(5)).encode(), "5 of bits"),
    (Reason.TOO_LARGE, report() + bytes(MAX_MESSAGE_BYTES), f"the limit is {MAX_MESSAGE_BYTES}"),
    (Reason.UNKNOWN_COLLECTION, report(key=("nobody", 1)), "'nobody' version 1"),
    (Reason.UNKNOWN_COLLECTION, report(key=("x" * 1000, 1)), f"'{'x' * 64}' version 1"),
    (Reason.UNKNOWN_VERSION, report(key=("symbol", 3)), "'symbol' version 3"),
    (Reason.UNKNOWN_VERSION, ReportBatch("bits", 9, b"", b"", bits=b"").encode(), "'bits' version 9"),
    (Reason.RETIRED_VERSION, report(key=RETIRED.key), "'symbol' version 7"),
    (Reason.WRONG_PAYLOAD, report(b"\0\0"), "2 bytes, but urr reports a symbol"),
    (Reason.WRONG_PAYLOAD, report(3, key=BITS.key), "a symbol, but urap reports bytes"),
    (Reason.WRONG_LENGTH, report(b"\0", key=BITS.key), "1 bytes, not 2"),
    (Reason.WRONG_LENGTH, report(b"\0\0\0", key=BITS.key), "3 bytes, not 2"),
    (Reason.OUT_OF_DOMAIN, report(11), "symbol 11 of 11"),
    (Reason.OUT_OF_DOMAIN, report(-1), "symbol -1 of 11"),
    *((Reason.IMPOSSIBLE_PAYLOAD, report(bits, key=BITS.key), "not an output of urap") for bits in IMPOSSIBLE_PAYLOAD),
    (Reason.INVALID_TIME, report(time=-1), "event time -1"),
    (Reason.INVALID_TIME, report(time=YEAR_9000), f"event time {YEAR_9000}"),
    (Reason.TOO_EARLY, report(time=START + 10 * MINUTE + 1), "event time is 600001 ms ahead"),
    (Reason.INVALID_TIME, report(time=START * 1000), f"event time {START}000; it looks like microseconds since 1970"),
    (Reason.INVALID_TIME, report(time=START * 10**6 + 1), "it looks like nanoseconds since 1970, and must be milli"),
    (Reason.EXPIRED, report(time=START - YEAR - 1), f"{YEAR + 1} ms before the stream's clock"),
    (Reason.EXPIRED, report(time=START // 1000), "it looks like seconds since 1970, and must be milliseconds"),
    (Reason.EXPIRED, report(time=START - 2 * HOUR - 1, key=YOUNG.key), "7200001 ms before"),
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


@pytest.mark.parametrize(
    ("published", "reason", "unit"),
    [
        (START // 1000, Reason.TOO_EARLY, "seconds"),
        (START * 10**3, Reason.INVALID_TIME, "microseconds"),
        (START * 10**6, Reason.INVALID_TIME, "nanoseconds"),
        (START // 7, Reason.TOO_EARLY, None),
        (-1, Reason.INVALID_TIME, None),
        ((1 << 63) - 1, Reason.INVALID_TIME, None),
    ],
)
def test_a_publish_time_in_another_unit_is_named(published: int, reason: Reason, unit: str | None) -> None:
    (rejected,) = decode(Message(report(), published)).rejected
    assert rejected.reason is reason
    hint = f"looks like {unit} since 1970, and must be milliseconds"
    assert rejected.detail.endswith(hint) if unit else "looks like" not in rejected.detail


def test_the_age_of_a_report_is_judged_by_when_it_was_published() -> None:
    old = START - 20 * YEAR  # of an archive
    for judge_lateness in (False, True):
        decoded = decode(Message(report(time=old), old + 5), judge_lateness=judge_lateness)
        assert [len(columns) for columns in decoded.columns] == [1]


def test_there_is_a_case_of_every_reason() -> None:
    # test_windows_at_will.py and test_sender_cap.py have their cases.
    of_many_reports = {Reason.TOO_MANY_WINDOWS, Reason.OVER_SENDER_LIMIT}
    assert {reason for reason, _, _ in CASES} == set(Reason) - of_many_reports


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
        bodies=(data[:STORED_BYTES] if reason is Reason.TOO_LARGE else data,),
        attributes={"k": "v"},
        publish_times=(START,),
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
    assert len(rejected.bodies[0]) == MAX_MESSAGE_BYTES
