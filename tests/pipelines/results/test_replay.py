"""Rejected reports that are sent again: once the cause is mended they count, once; otherwise they change nothing."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests import build
from tests.build import HOUR, START
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.pipelines.results.records import read_rejected_folder
from uldp.pipelines.results.replay import Replayed, replay
from uldp.schemas.pane import Accounting
from uldp.schemas.records import ATTEMPT, SENDER, Message, Report
from uldp.schemas.rejected import Rejected
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import StreamError, read_messages

REPORTS = 40
RECORD = Rejected("decode", "not_avro", "", (b"junk",), {SENDER: "here"}, (START,), "0:0", 1, "0.1.0")


OLD, NEW = (
    build.spec(collection="one-each", version=version, domain={"size": REPORTS}, mechanism={"name": "identity"})
    for version in (1, 2)
)


def backfill(specs: list[CollectionSpec], source: Path, out: Path) -> list[Statistic]:
    jobs.backfill(specs, source, out, jobs.pipeline_options([]))
    return newest(ResultsFolder(out).statistics())


@pytest.fixture
def stream(tmp_path: Path) -> LocalStream:
    """Twenty reports under each version, which each name a symbol of their own, and one that nobody can mend."""
    rng = np.random.default_rng(1)
    stream = LocalStream.create(tmp_path / "stream")
    versions = [1 + symbol % 2 for symbol in range(REPORTS)]
    reports = [Report("one-each", versions[symbol], rng.bytes(16), START, symbol) for symbol in range(REPORTS)]
    stream.append([*(Message(report.encode(), START) for report in reports), Message(b"junk", START)])
    return stream


def test_what_is_mended_counts_and_what_was_counted_is_not_counted_again(stream: LocalStream, tmp_path: Path) -> None:
    (before,) = backfill([OLD], stream.path, tmp_path / "before")
    assert before.accounting == Accounting(received=20, counted=20)

    rejected = tmp_path / "before" / "rejected"
    for _ in range(2):  # twice, to see that it changes nothing
        assert replay(read_rejected_folder(rejected), stream, max_attempts=5) == Replayed(sent=21, exhausted=0, cut=0)
    old, new = backfill([OLD, NEW], stream.path, tmp_path / "after")

    assert (old.cells + new.cells).tolist() == [1] * REPORTS
    assert old.accounting == Accounting(received=20, counted=20)
    assert new.accounting == Accounting(received=60, counted=20, duplicate=40)
    attempts = sorted(record.attempt for record in read_rejected_folder(tmp_path / "after" / "rejected"))
    assert attempts == [1, 2, 2]


def test_bytes_and_attributes_stay_and_the_attempt_is_raised(tmp_path: Path) -> None:
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    stream.append([Message(b"before", START + HOUR)])
    assert replay([RECORD, replace(RECORD, attempt=3)], stream, max_attempts=4) == Replayed(2, 0, 0)
    messages = list(read_messages(stream.segments()[-1]))
    assert [message.data for message in messages] == [b"junk", b"junk"]
    assert [message.attributes for message in messages] == [{SENDER: "here", ATTEMPT: str(n)} for n in (2, 4)]
    assert {message.publish_time for message in messages} == {START + HOUR}  # no earlier than what came before


@pytest.mark.parametrize(
    ("record", "replayed"),
    [
        (replace(RECORD, attempt=4), Replayed(sent=0, exhausted=1, cut=0)),
        (replace(RECORD, reason="too_large"), Replayed(sent=0, exhausted=0, cut=1)),
        (replace(RECORD, bodies=()), Replayed(sent=0, exhausted=0, cut=1)),
    ],
)
def test_what_is_not_sent(record: Rejected, replayed: Replayed, tmp_path: Path) -> None:
    stream = LocalStream.create(tmp_path / "stream")
    assert replay([record], stream, max_attempts=4) == replayed
    assert stream.segments() == []


def test_of_equal_messages_of_a_record_one_is_sent(tmp_path: Path) -> None:
    stream = LocalStream.create(tmp_path / "stream")
    bodies = (b"a", b"b", b"a")
    record = replace(RECORD, bodies=bodies, publish_times=(1, 2, 3), runs=((0, 3),), reports=6)
    replayed = replay([record], stream, max_attempts=4)
    assert replayed == Replayed(sent=4, exhausted=0, cut=0, copies=2)
    assert str(replayed).endswith(", 2 not sent because they are copies of others")
    record = replace(RECORD, runs=((0, 2**50),), reports=2**50)  # as a hostile file may claim
    assert replay([record], LocalStream.create(tmp_path / "to"), max_attempts=4).copies == 2**50 - 1
    assert [message.data for file in stream.segments() for message in read_messages(file)] == [b"a", b"b"]


@pytest.mark.parametrize("written", ["5", "9999"])
def test_a_forged_copy_is_not_sent_again_and_the_report_is(written: str, tmp_path: Path) -> None:
    """Any publisher may write the attribute. It decides about the messages alone that carry it."""
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    report = build.message(build.report(1, 1, key=("c", 2)))  # no job of this test knows the version
    stream.append([report._replace(attributes={ATTEMPT: written}), report])
    backfill([build.spec()], stream.path, tmp_path / "out")
    rejected = read_rejected_folder(tmp_path / "out" / "rejected")
    assert replay(rejected, LocalStream.create(tmp_path / "to"), max_attempts=5) == Replayed(1, exhausted=1, cut=0)


def test_a_closed_stream_is_refused(tmp_path: Path) -> None:
    stream = LocalStream.create(tmp_path / "stream")
    stream.close()
    with pytest.raises(StreamError, match="is closed; replay into a new directory"):
        replay([RECORD], stream, max_attempts=4)
