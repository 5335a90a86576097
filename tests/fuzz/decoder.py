"""What must hold of the decoder for any bytes at all.

An input is a handful of messages. Each is decoded by the fast paths (reports as columns, batches in place) and by the
plain decoder, which must agree.
"""

import sys
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence

from uldp.collector.collections import YEAR_9000
from uldp.collector.reader import Decoded, ReportReader
from uldp.schemas.codec import columnar
from uldp.schemas.codec.batched import BatchViews
from uldp.schemas.codec.columnar import Layout, report_schema
from uldp.schemas.framing import header, load_schema
from uldp.schemas.reasons import Reason
from uldp.schemas.records import ATTEMPT, NO_ATTRIBUTES, SENDER, Message
from uldp.schemas.specs.collection import CollectionSpec

START = 1_767_258_000_000  # 2026-01-01T09:00:00Z, the time in messages.json of the vectors
MINUTE, HOUR = 60_000, 3_600_000

#: Named like those in messages.json of the vectors, so that its messages are counted.
SPECS = tuple(
    CollectionSpec.parse({"window": {"size": "1h", "allowed_lateness": "30m"}} | keys)
    for keys in (
        {
            "collection": "ab",
            "version": 1,
            "domain": {"size": 600},
            "sensitive": list(range(60)),
            "mechanism": {"name": "urr", "epsilon": 1.0},
            "tags": [{"name": "home"}],
        },
        {
            "collection": "ab",
            "version": 2,
            "domain": {"size": 22},
            "sensitive": list(range(20)),
            "mechanism": {"name": "urap", "epsilon": 1.0},
            "limits": {"max_age": "2h", "max_reports_per_sender": 3},
        },
        {
            "collection": "a",
            "version": 1,
            "domain": {"size": 24},
            "mechanism": {"name": "oue", "epsilon": 1.0},
            "window": {"size": "1h", "period": "15m"},
        },
        {
            "collection": "a",
            "version": 2,
            "domain": {"size": 10},
            "mechanism": {"name": "rr", "epsilon": 1.0},
            "retired": True,
        },
    )
)
DECODER = ReportReader(SPECS, judge_lateness=True, sender_key=bytes(32))


def _heads() -> Iterator[bytes]:
    """Beginnings of messages that no search would guess: fingerprints, then collections and versions too."""
    schemas = report_schema(), load_schema("report_batch")
    yield b""
    yield from map(header, schemas)
    for spec in SPECS:
        for schema in schemas:
            yield Layout.of(schema, *spec.key, None).prefix


#: A frame begins with three bytes: the index of a head, a clock and an attempt in one, and the length of what follows.
FRAME_SIZE = 3
HEADS = tuple(_heads())
CLOCKS = (
    *(START, START + HOUR, START + 90 * MINUTE - 1, START + 90 * MINUTE, START + 4 * HOUR, START - HOUR, 0),
    *(-1, YEAR_9000 - 1, YEAR_9000, 2**63 - 1, -(2**63)),
)
ATTEMPTS: tuple[Mapping[str, str], ...] = (
    NO_ATTRIBUTES,
    *({ATTEMPT: written} for written in ("0", "2", "99999", "-1", "\u0663", "")),
    *({SENDER: key} for key in ("gateway", "\udcff", "", "x" * 256)),
    {ATTEMPT: "9999", SENDER: "\u202e", "other": "kept by nobody"},
)
MAX_MESSAGES = 16
#: Bytes that the records of one message may hold more than the message: what comes before the columns of a batch, once
#: for each verdict.
REPEATED = 512


def frame(message: bytes, clock: int = 0, attempt: int = 0) -> bytes:
    """Write ``message`` such that ``messages`` reads it back.

    Args:
        message: No more than 255 bytes behind the longest of HEADS that it begins with.
        clock: Index into CLOCKS.
        attempt: Index into ATTEMPTS.
    """
    head = max(range(len(HEADS)), key=lambda index: message.startswith(HEADS[index]) * len(HEADS[index]))
    body = message.removeprefix(HEADS[head])
    return bytes((head, clock + len(CLOCKS) * attempt, len(body))) + body


def messages(data: bytes) -> list[Message]:
    """Read up to MAX_MESSAGES frames, whatever the bytes."""
    found: list[Message] = []
    while data and len(found) < MAX_MESSAGES:
        head, stamp, length = data[:FRAME_SIZE].ljust(FRAME_SIZE, b"\0")
        body, data = data[FRAME_SIZE : FRAME_SIZE + length], data[FRAME_SIZE + length :]
        attempt, clock = divmod(stamp, len(CLOCKS))
        found.append(
            Message(HEADS[head % len(HEADS)] + body, CLOCKS[clock], ATTEMPTS[attempt % len(ATTEMPTS)], str(len(found)))
        )
    return found


def decode_fast(arrivals: Sequence[Message]) -> Decoded:
    """Decode by the fast paths whatever they take, however few messages there are."""
    usual, columnar.MIN_ROWS = columnar.MIN_ROWS, 1
    try:
        return DECODER.decode(arrivals)
    finally:
        columnar.MIN_ROWS = usual


def decode_plain(arrivals: Sequence[Message]) -> Decoded:
    """Decode by the plain decoder alone."""
    usual = columnar.MIN_ROWS, BatchViews.read
    columnar.MIN_ROWS, BatchViews.read = sys.maxsize, _leave  # type: ignore
    try:
        return DECODER.decode(arrivals)
    finally:
        columnar.MIN_ROWS, BatchViews.read = usual  # type: ignore


def _leave(batches: BatchViews, message: bytes) -> None:
    return None


def outcome(decoded: Decoded) -> tuple[object, ...]:
    """What became of each report, in an order that does not depend on how it was decoded."""
    return (
        decoded.received,
        sorted(
            (columns.collection, columns.version, ids.tobytes(), int(start), payload.tobytes(), int(signals))
            for columns in decoded.columns
            for ids, start, payload, signals in zip(
                columns.report_ids, columns.slices, columns.payloads, columns.signals, strict=True
            )
        ),
        decoded.late_reports,
        sorted((late.source, late.data, late.publish_time) for late in decoded.late),
        sorted(
            (each.source, each.bodies, each.publish_time, each.reason, each.detail, each.attempt, each.reports)
            for each in decoded.rejected
        ),
        sorted(
            (key, start, part.accounting.received, part.signals(0))
            for key, parts in decoded.partials.items()
            for start, part in parts.slices()
        ),
    )


def check(data: bytes) -> int:
    """Decode the messages in ``data`` in both ways and check both; return how many messages they are.

    Raises:
        AssertionError: if a report is lost, counted twice or rejected without a reason, or the decoders disagree.
    """
    arrivals = messages(data)
    both = decode_fast(arrivals), decode_plain(arrivals)
    for decoded in both:
        counted = sum(map(len, decoded.columns))
        assert decoded.received == counted + decoded.late_reports + sum(record.reports for record in decoded.rejected)
        assert sum(partial.accounting.late for partial in decoded.partials.values()) == decoded.late_reports
        assert all(part.accounting.closes() for parts in decoded.partials.values() for _, part in parts.slices())
        kept = sum(len(late.data) for late in decoded.late)
        kept += sum(sum(map(len, each.bodies)) for each in decoded.rejected)
        assert kept <= sum(len(message.data) + REPEATED for message in arrivals)
        for rejected in decoded.rejected:
            assert isinstance(rejected.reason, Reason)
            assert "MemoryError" not in rejected.detail
            assert 1 <= rejected.attempt <= 9999
    fast_outcome, plain_outcome = map(outcome, both)
    assert fast_outcome == plain_outcome, f"{fast_outcome}\n!=\n{plain_outcome}"
    return len(arrivals)


def bound(arrivals: Sequence[Message]) -> int:
    """Return how many bytes of memory it may take to decode messages: so much for a call, a message, and a byte."""
    return 64_000 + 1_000 * len(arrivals) + 24 * sum(len(message.data) for message in arrivals)


def peak(arrivals: Sequence[Message]) -> int:
    """Return how many bytes of memory it takes to decode messages, at the worst moment of the worse of both ways."""
    peaks = []
    for decode in (decode_fast, decode_plain):
        tracemalloc.start()
        try:
            decode(arrivals)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    return max(peaks)
