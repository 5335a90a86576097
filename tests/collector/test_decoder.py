"""Reports that the decoder counts, and those that are late: columns, batches and signals."""

from collections import Counter

import pytest

from tests.build import HOUR, MINUTE, SENDER_KEY, START, batch
from tests.collector.decoding import BITS, ID, SYMBOL, accounting, both_paths, decode, outcomes, report, spec
from uldp.collector.reader import Decoded, ReportReader
from uldp.collector.signals import sender_digest
from uldp.schemas.pane import SKEW_RANGES
from uldp.schemas.reasons import Reason
from uldp.schemas.records import SENDER, Message, Report, ReportBatch


def test_nothing_becomes_nothing() -> None:
    assert decode() == Decoded()
    empty = decode(Message(ReportBatch(*SYMBOL.key, b"", b"", symbols=b"").encode(), START))
    assert (empty.received, sum(map(len, empty.columns)), empty.late, empty.rejected) == (0, 0, [], [])


# Batches.


@pytest.mark.parametrize(
    ("key", "good", "bad", "impossible"),
    [(SYMBOL.key, 3, 11, Reason.OUT_OF_DOMAIN), (BITS.key, b"\x80\x40", b"\x18\0", Reason.IMPOSSIBLE_PAYLOAD)],
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
    assert (decoded.received, decoded.late_reports, decoded.rejected_reports) == (5, 1, 3)
    assert [columns.report_ids.tobytes() for columns in decoded.columns] == [sent[1].report_id]
    assert decoded.late == [Message(batch(sent[:1]).encode(), published, {"k": "v"}, "s:1")]
    assert {rejected.bodies[0]: (rejected.reason, rejected.reports) for rejected in decoded.rejected} == {
        batch([sent[2], sent[4]]).encode(): (impossible, 2),
        batch([sent[3]]).encode(): (Reason.INVALID_TIME, 1),
    }
    assert {(rejected.publish_time, rejected.source) for rejected in decoded.rejected} == {(published, "s:1")}
    alone = decode(*decoded.late, *(Message(rejected.bodies[0], published) for rejected in decoded.rejected))
    assert accounting(alone) == accounting(decoded)
    assert outcomes(alone) + Counter({(sent[1], "counted"): 1}) == outcomes(decoded)


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
    decoded = ReportReader([asked, BITS], judge_lateness=False, sender_key=SENDER_KEY).decode(messages)
    found = {
        (key, start): dict(zip(senders.digests.tolist(), senders.reports.tolist(), strict=True))
        for key, parts in decoded.partials.items()
        for start, senders in parts.senders.items()
    }
    gateway, phone = (sender_digest(sender, SENDER_KEY) for sender in ("gateway", "phone"))
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
    ((start, part),) = decoded.partials[SYMBOL.key].slices()
    signals = part.signals(start)
    assert start == START
    assert (signals.past, signals.early) == ((), (*[0] * half_an_hour, 1))
