"""Which messages are refused at the door, against what a job of the same specs counts, and the sample that is kept."""

from pathlib import Path
from stat import S_IMODE

import numpy as np
import pytest

from tests import build
from tests.build import HOUR, MINUTE, START
from tests.pipelines.intake.posting import Collecting, post
from tests.pipelines.intake.test_collect import now, write_spec
from uldp.collector import Collector
from uldp.pipelines.intake import judging
from uldp.pipelines.intake import refused as module
from uldp.pipelines.intake.judging import Again, Judge, Late, Refusal
from uldp.pipelines.intake.refused import RefusedSample
from uldp.pipelines.results.records import records_of
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message
from uldp.schemas.rejected import Rejected

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


BAD = Refusal(Reason.NOT_AVRO, "no header")


def kept(folder: Path) -> list[Rejected]:
    def fail(damage: Exception) -> None:
        raise damage

    return [*records_of(sorted(folder.glob("*.avro")), "rejected", Rejected.from_avro, fail)]


def test_the_command_keeps_what_it_refuses_and_nothing_else(tmp_path: Path) -> None:
    write_spec(tmp_path / "spec.yaml")
    folder = tmp_path / "refused"
    with Collecting(tmp_path / "spec.yaml", tmp_path / "posted", "--refused", str(folder)) as collecting:
        answers = [post(collecting.port, body)[0] for body in (build.report(1, 3, now()).encode(), b'{"value": 3}')]
    assert answers == [202, 422]
    (record,) = kept(folder)
    assert (record.reason, record.bodies, record.stage) == ("not_avro", (b'{"value": 3}',), "intake")
    assert S_IMODE(folder.stat().st_mode) == 0o700
    assert {S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_so_many_of_each_reason_are_kept_in_an_hour(tmp_path: Path) -> None:
    sample = RefusedSample(tmp_path / "refused")
    other = Refusal(Reason.TRUNCATED, "ends")
    for number in range(30):
        message = Message(b"%d" % number, build.START)
        sample.keep([(message, BAD)] * 5 + [(message, other)])
    assert sorted(record.reason for record in kept(tmp_path / "refused")) == ["not_avro"] * 100 + ["truncated"] * 30


def test_the_oldest_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES", 5_000)
    sample = RefusedSample(tmp_path / "refused")
    for number in range(20):
        sample.keep([(Message(build.report(number, 3).encode(), build.START + number), BAD)])
    times = [record.publish_time - build.START for record in kept(tmp_path / "refused")]
    assert times == [*range(20 - len(times), 20)]
    assert 0 < len(times) < 20
