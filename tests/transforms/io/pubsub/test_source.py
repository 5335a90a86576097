"""Pub/Sub without Pub/Sub: the reader, its watermark, and the transforms around it."""

import pickle
from collections.abc import Sequence
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp

from tests.fakes.pubsub import (
    NOW,
    SUBSCRIPTION,
    Answer,
    Client,
    Clock,
    Queue,
    StillLeases,
    commit,
    queue_of,
    received,
    watermark,
)
from uldp.schemas.records import SENDER, Message
from uldp.transforms.io.pubsub import source as pubsub
from uldp.transforms.io.pubsub.checkpoint import EXTENSION_SECONDS, AckMark, Unavailable
from uldp.transforms.io.pubsub.source import (
    LOG_EVERY_SECONDS,
    RETENTION_MS,
    PubSubReader,
    PubSubSource,
    ReadSubscription,
)

DELAY = 10_000


def message(name: str, published: int) -> Message:
    return Message(name.encode(), published)


def reader_of(
    *given: Sequence[Message] | Exception, clock: Clock | None = None, recovering: bool = False, **settings: Any
) -> PubSubReader:
    clock = clock or Clock()
    source = PubSubSource(SUBSCRIPTION, delay_ms=DELAY, **settings)
    leases = StillLeases(Queue(list(given)), clock=clock)
    return PubSubReader(source, leases, recovering=recovering, clock=clock, pause=clock.pause)


def next_reader(reader: PubSubReader) -> PubSubReader:
    """The reader that a runner makes for the bundle behind this one's, which is set aside."""
    mark = reader.get_checkpoint_mark()
    return PubSubReader(reader._source, reader._leases, mark, clock=reader._clock, pause=reader._pause)


def test_a_pull_is_a_chunk_at_its_oldest_message() -> None:
    messages = [message("b", NOW), message("a", NOW - 1)]
    reader = reader_of(messages)
    assert reader.start()
    assert list(reader.get_current().messages) == messages
    assert reader.get_current_timestamp() == Timestamp(micros=(NOW - 1) * 1000)
    assert not reader.advance()


def test_before_anything_is_known_the_watermark_is_what_pubsub_keeps() -> None:
    reader = reader_of(Unavailable())
    assert not reader.start()
    assert watermark(reader) == NOW - RETENTION_MS


def test_the_watermark_is_of_the_oldest_that_is_not_acknowledged() -> None:
    reader = reader_of([message("a", NOW - 5000), message("b", NOW - 7000)], [message("c", NOW - 3000)])
    reader.start()
    assert watermark(reader) == NOW - 7000 - DELAY
    mark = reader.get_checkpoint_mark()
    reader.advance()
    assert watermark(reader) == NOW - 7000 - DELAY
    mark.finalize_checkpoint()
    reader.get_checkpoint_mark().finalize_checkpoint()
    assert watermark(reader) == NOW - 3000 - DELAY


def test_a_subscription_that_has_nothing_to_give_follows_the_clock() -> None:
    clock = Clock()
    reader = reader_of([message("a", NOW - 5000)], clock=clock)
    reader.start()
    commit(reader)
    clock.now += 60
    # All is acknowledged, but whether there is more nobody has asked yet.
    assert watermark(reader) == NOW - RETENTION_MS
    reader.advance()
    assert watermark(reader) == NOW + 60_000 - DELAY


def test_a_subscription_that_does_not_answer_says_nothing_of_the_time() -> None:
    clock = Clock()
    reader = reader_of((), Unavailable(), clock=clock)
    reader.start()
    assert watermark(reader) == NOW - DELAY
    clock.now += 60
    reader.advance()
    assert watermark(reader) == NOW - DELAY


def test_a_simulated_clock_stands_still_without_messages() -> None:
    clock = Clock()
    given = ((), [message("a", 5_000_000), message("b", 7_000_000)], [message("c", 6_000_000)])
    reader = reader_of(*given, clock=clock, simulated_clock=True, timestamp_attribute="time")
    reader.start()
    assert reader.get_watermark() == MIN_TIMESTAMP
    for _ in range(2):
        reader.advance()
        assert watermark(reader) == 5_000_000 - DELAY
    commit(reader)
    clock.now += 60
    assert watermark(reader) == 5_000_000 - DELAY
    reader.advance()
    assert watermark(reader) == 7_000_000 - DELAY


def test_who_is_set_aside_and_taken_up_again_knows_nothing_of_what_followed() -> None:
    first = reader_of(*[[message(name, NOW)] for name in "abcdef"])
    queue = queue_of(first)
    first.start()
    second = next_reader(first)
    second.start()
    third = next_reader(second)
    assert [third.start(), third.advance()] == [True, True]
    assert queue.given_back == []
    assert [first.advance(), first.advance()] == [True, True]
    assert queue.given_back == ["b", "c", "d"]
    commit(first)
    assert queue.acknowledged == ["a", "e", "f"]


def test_who_goes_on_elsewhere_waits_for_what_comes_again() -> None:
    clock = Clock()
    reader = reader_of([message("new", NOW)], [message("again", NOW - 9000)], clock=clock, recovering=True)
    reader.start()
    assert watermark(reader) == NOW - RETENTION_MS
    clock.now += EXTENSION_SECONDS
    reader.advance()
    assert watermark(reader) == NOW - RETENTION_MS
    clock.now += 1
    assert watermark(reader) == NOW - 9000 - DELAY


def test_an_outage_is_logged_from_time_to_time(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody but the reader waits between its looks, and a runner makes another for each bundle."""
    clock = Clock()
    reader = reader_of(*[Unavailable("away")] * 200, clock=clock)
    while clock.now < NOW / 1000 + 2.5 * LOG_EVERY_SECONDS:
        assert not reader.advance()
        reader = next_reader(reader)
    assert [record.message for record in caplog.records] == ["away; asking again"] * 3


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(pubsub, "MOST_OUTSTANDING", 2)
    reader = reader_of([message("a", NOW)], [message("b", NOW)], [message("c", NOW)])
    assert [reader.advance() for _ in range(4)] == [True, True, False, False]
    assert "no checkpoint has covered 2 messages" in caplog.text
    commit(reader)
    assert reader.advance()


def test_the_sources_of_readers_differ() -> None:
    """A runner keeps readers by the bytes of their source and mark."""
    source = PubSubSource(SUBSCRIPTION, pullers=3)
    assert len({pickle.dumps(each) for each in source.of_readers()}) == 3
    assert len(PubSubSource(SUBSCRIPTION, simulated_clock=True).of_readers()) == 1


def test_readers_that_follow_one_another_share_a_connection(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pubsub, "Leases", StillLeases)
    source = PubSubSource(SUBSCRIPTION)
    client.answers = [received(NOW), *[Answer(received_messages=[])] * 100]
    reader, parked = source.create_reader(None, None), []
    for _ in range(100):
        reader.start()
        mark = reader.get_checkpoint_mark()
        mark.finalize_checkpoint()
        parked.append(reader)
        reader = source.create_reader(None, mark)
    assert client.subscribers == 1
    assert [request["ack_ids"] for method, request in client.requests if method == "acknowledge"] == [["ack"]]


def test_a_reader_goes_on_behind_a_mark_of_another_process(client: Client) -> None:
    mark = AckMark(b"0123456789abcdef", 41)
    client.answers = [Answer(received_messages=[])]
    reader = PubSubSource(SUBSCRIPTION).create_reader(None, mark)
    before = watermark(reader)
    assert not reader.advance()
    assert watermark(reader) == before
    assert reader.get_checkpoint_mark() == AckMark(mark.chain, mark.number + 1, before)


def test_what_a_runner_reads_itself_becomes_our_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = PubsubMessage(b"body", {SENDER: "a"}, message_id="17")
    at_its_time = beam.Map(lambda message: TimestampedValue(message, NOW / 1000))
    monkeypatch.setattr(beam.io, "ReadFromPubSub", lambda **_: beam.Create([theirs]) | at_its_time)
    with beam.Pipeline("FnApiRunner") as pipeline:
        messages = pipeline | "Read" >> ReadSubscription(PubSubSource(SUBSCRIPTION), native=True)
        assert_that(messages, equal_to([Message(b"body", NOW, {SENDER: "a"}, f"{SUBSCRIPTION.name}:17")]))
