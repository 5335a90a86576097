"""Which messages are refused at the door, against what a job of the same specs counts."""

import numpy as np
import pytest

from tests import build
from tests.build import HOUR, MINUTE, START
from uldp.collector import Collector
from uldp.pipelines.intake import judging
from uldp.pipelines.intake.judging import Again, Judge, Late, Refusal
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message

DAY = 24 * HOUR
SPEC = build.spec(limits={"max_reports_per_sender": 1, "cap_senders": True})
GOOD, WRONG = build.report(1, 3), build.report(2, 77)
NEXT = build.report(3, 3, key=("c", 2))


def refused(*messages: Message) -> dict[int, Reason]:
    return {row: each.reason for row, each in Judge([SPEC]).judge(messages).items() if isinstance(each, Refusal)}


def test_what_can_never_be_counted_is_refused_with_its_reason() -> None:
    messages = [
        build.message(GOOD),
        build.message(WRONG),
        Message(b"", START),
        Message(b"{}", START),
        Message(GOOD.encode()[:-3], START),
        build.message(build.report(4, 3, key=("other", 1))),
        build.message(GOOD, START - 20 * DAY),
    ]
    assert refused(*messages) == {
        1: Reason.OUT_OF_DOMAIN,
        2: Reason.NOT_AVRO,
        3: Reason.NOT_AVRO,
        4: Reason.TRUNCATED,
        5: Reason.UNKNOWN_COLLECTION,
        6: Reason.TOO_EARLY,
    }


def test_a_batch_with_a_report_that_counts_is_kept() -> None:
    mixed, wrong = build.batch([GOOD, WRONG]), build.batch([WRONG, build.report(5, 99)])
    assert refused(Message(mixed.encode(), START), Message(wrong.encode(), START)) == {1: Reason.OUT_OF_DOMAIN}


def test_a_job_counts_something_of_each_message_that_is_kept_and_nothing_of_the_others() -> None:
    """Over random damage to a report and to a batch."""
    rng = np.random.default_rng(8)
    bodies = [GOOD.encode(), build.batch([GOOD, WRONG]).encode()]
    messages = []
    for _ in range(400):
        body = bytearray(bodies[int(rng.integers(2))])
        body[int(rng.integers(len(body)))] ^= 1 << int(rng.integers(8))
        messages.append(Message(bytes(body), START))
    judged = Judge([SPEC]).judge(messages)
    found, ahead = ({row for row, each in judged.items() if isinstance(each, kind)} for kind in (Refusal, Again))
    for row, message in enumerate(messages):
        collector = Collector([SPEC], sender_key=build.SENDER_KEY)
        rejected = collector.add([message])
        counted = sum(each.accounting.counted for each in collector.statistics())
        later = any(each.reason == Reason.UNKNOWN_VERSION for each in rejected)
        assert (counted > 0 or later) == (row not in found) or row in ahead
    assert 0 < len(found) < len(messages)


def test_late_reports_are_kept_and_numbered_by_the_clock_of_the_job() -> None:
    """Devices round by an hour, and this spec has windows of ten minutes: most of what comes at once is late."""
    minutes = build.spec(window={"size": "10m", "allowed_lateness": "5m"})
    closes = START + 15 * MINUTE
    at_once, mixed = [build.report(number, 3, START) for number in range(4)], build.report(9, 3, START + 10 * MINUTE)
    messages = [
        Message(at_once[0].encode(), closes - 1),
        Message(at_once[1].encode(), closes),
        Message(build.batch([*at_once, mixed]).encode(), closes),
        Message(build.batch([at_once[2], WRONG]).encode(), closes),
        Message(WRONG.encode(), closes),
    ]
    found = Judge([minutes]).judge(messages)
    assert {row: each for row, each in found.items() if isinstance(each, Late)} == {1: (1,), 2: (4,), 3: (1,)}
    assert [row for row, each in found.items() if isinstance(each, Refusal)] == [4]


@pytest.mark.parametrize(
    ("ahead", "opens", "found"),
    [
        (9 * MINUTE, None, None),
        (11 * MINUTE, None, 60),
        (HOUR, None, 7200),
        (2 * DAY, None, 86_400),
        (6 * DAY, None, 86_400),
        (8 * DAY, None, Reason.TOO_EARLY),
        (0, "2026-01-01T09:00:30Z", 60),
        (0, "2026-01-03T00:00Z", 86_400),
        (0, "2026-02-01T00:00Z", 86_400),
    ],
)
def test_what_time_cures_is_to_come_again(ahead: int, opens: str | None, found: int | Reason | None) -> None:
    """The reader counts it once its publish time is later, so it is the clock alone that refuses it."""
    spec = build.spec(**({} if opens is None else {"opens": opens}))
    verdict = Judge([spec]).judge([build.message(build.report(1, 3, START + ahead), START)]).get(0)
    assert (verdict.reason if isinstance(verdict, Refusal) else verdict and verdict[0]) == found


def test_reports_that_nobody_may_ever_read_are_kept_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "_MOST_LATER", 10 * len(NEXT.encode()))
    judge = Judge([SPEC])
    found = judge.judge([build.message(NEXT)] * 11 + [build.message(GOOD)])
    (last,) = found.values()
    assert isinstance(last, Again)
    assert (last.refusal.reason, 0 < last.seconds <= 3600) == (Reason.UNKNOWN_VERSION, True)
