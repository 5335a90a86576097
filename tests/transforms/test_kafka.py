"""The reader of Kafka against a broker that is a few lists; the client library is not needed."""

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import ModuleType, SimpleNamespace
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP
from hypothesis import given
from hypothesis import strategies as st

from schemas.records import Message
from transforms.kafka import ASK_SECONDS, KafkaReader, KafkaSource, ReadFromKafka, WriteToKafka, attributes
from transforms.kafkaconsumers import CONSUMERS, IDLE_SECONDS, Consumers
from transforms.kafkamark import KafkaMark, KafkaMarkCoder, Position
from transforms.kafkatopic import KafkaError, KafkaTopic

TOPIC = KafkaTopic("broker:9092", "reports")
#: The present, in ms.
NOW = 1767258000000
LONGEST = 2**63 - 1
NO_TOPIC, TOO_LARGE, NO_PERMISSION = 3, 10, 29
ALL_BROKERS_DOWN, END_OF_PARTITION, TIMED_OUT, NO_PARTITION, NO_TOPIC_HERE = -187, -191, -185, -190, -188
BEGINNING = -2


class Failure(Exception):  # noqa: N818 (stands for the client's KafkaException)
    pass


@dataclass
class Reason:
    """An error as the client has it."""

    number: int
    dead: bool = False

    def code(self) -> int:
        return self.number

    def fatal(self) -> bool:
        return self.dead

    def str(self) -> str:
        return f"reason {self.number}"


@dataclass
class Raw:
    """A message, or an event, as the client has it."""

    at: tuple[int, int] = (0, 0)
    time: int = NOW
    body: bytes | None = b""
    named: Callable[[], Any] = lambda: None
    failed: Reason | None = None

    def partition(self) -> int:
        return self.at[0]

    def offset(self) -> int:
        return self.at[1]

    def timestamp(self) -> tuple[int, int]:
        return 1, self.time

    def value(self) -> bytes | None:
        return self.body

    def headers(self) -> Any:
        return self.named()

    def error(self) -> Reason | None:
        return self.failed


@dataclass
class Broker:
    """Partitions as lists of publish times, and what the client does with them.

    Attributes:
        partitions: The publish times of each.
        refuses: What every question is answered with.
        events: What the next fetch gives beside messages.
        leaderless: Partitions of which nobody knows the end.
        largest: How many messages a fetch gives.
        consumers: All that were connected.
        written: What was written: topic, key and value.
        room: How many records the producer's queue holds.
        committed: What a group was told: (partition, offset).
    """

    partitions: dict[int, list[int]]
    refuses: Reason | None = None
    events: list[Raw] = field(default_factory=list)
    leaderless: set[int] = field(default_factory=set)
    largest: int = 1000
    consumers: list[Any] = field(default_factory=list)
    written: list[tuple[str, bytes, bytes]] = field(default_factory=list)
    room: int = 2
    delivers: Reason | None = None
    committed: list[tuple[int, int]] = field(default_factory=list)

    def client_module(self) -> ModuleType:
        def partition(topic: str, partition: int, offset: int = 0) -> Any:
            return SimpleNamespace(topic=topic, partition=partition, offset=offset, error=None)

        module = ModuleType("confluent_kafka")
        names = {"KafkaException": Failure, "TopicPartition": partition}
        names |= {"Consumer": self._connected(FakeConsumer), "Producer": self._connected(FakeProducer)}
        vars(module).update(names)
        return module

    def _connected(self, client: type) -> Callable[..., Any]:
        return lambda settings, logger: client(self, settings)


@dataclass
class FakeConsumer:
    broker: Broker
    settings: dict[str, Any]
    next: dict[int, int] = field(default_factory=dict)
    told: set[tuple[int, int]] = field(default_factory=set)
    closed: bool = False
    assigned: int = 0

    def __post_init__(self) -> None:
        self.broker.consumers.append(self)

    def _ask(self) -> None:
        if self.broker.refuses is not None:
            raise Failure(self.broker.refuses)

    def list_topics(self, name: str, timeout: float) -> Any:
        assert timeout > 0
        self._ask()
        return SimpleNamespace(topics={name: SimpleNamespace(error=None, partitions=dict(self.broker.partitions))})

    def offsets_for_times(self, asked: list[Any], timeout: float) -> list[Any]:
        assert 0 < timeout < 1
        assert all(each.offset == -1 for each in asked)
        self._ask()
        for each in asked:
            known = each.partition not in self.broker.leaderless
            each.offset = len(self.broker.partitions[each.partition]) if known else -1
            each.error = None if known else Reason(6)
        return asked

    def assign(self, partitions: list[Any]) -> None:
        self.assigned += 1
        self.told.clear()
        self.next = {each.partition: 0 if each.offset == BEGINNING else each.offset for each in partitions}

    def consume(self, most: int, timeout: float) -> list[Raw]:
        assert 0 < timeout < 1
        fetched, self.broker.events = self.broker.events, []
        for partition, times in self.broker.partitions.items() if self.broker.refuses is None else ():
            if partition not in self.next:
                continue
            for time in times[self.next[partition] :][: min(most, self.broker.largest) - len(fetched)]:
                fetched.append(Raw((partition, self.next[partition]), time))
                self.next[partition] += 1
            at = (partition, self.next[partition])
            if self.next[partition] == len(times) and at not in self.told:
                self.told.add(at)  # once
                fetched.append(Raw(at, failed=Reason(END_OF_PARTITION)))
        return fetched

    def commit(self, offsets: list[Any], asynchronous: bool) -> None:
        assert asynchronous
        self.broker.committed += [(each.partition, each.offset) for each in offsets]

    def close(self) -> None:
        assert not self.closed
        self.closed = True


@dataclass
class FakeProducer:
    broker: Broker
    settings: dict[str, Any]
    waiting: list[Any] = field(default_factory=list)

    def produce(self, topic: str, value: bytes, key: bytes, on_delivery: Any) -> None:
        if len(self.waiting) >= self.broker.room:
            raise BufferError
        if len(value) > 100:
            raise Failure(Reason(TOO_LARGE))
        self.waiting.append((topic, key, value, on_delivery))

    def poll(self, timeout: float) -> None:
        if timeout:
            self.flush()

    def flush(self) -> None:
        for topic, key, value, on_delivery in self.waiting:
            if self.broker.delivers is None:
                self.broker.written.append((topic, key, value))
            on_delivery(self.broker.delivers, None)
        self.waiting = []


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    made = Broker({0: []})
    monkeypatch.setitem(sys.modules, "confluent_kafka", made.client_module())
    yield made
    CONSUMERS.close()


@dataclass
class Clock:
    ms: int = NOW

    def __call__(self) -> float:
        return self.ms / 1000

    def tick(self, ms: int = int(ASK_SECONDS * 1000)) -> int:
        self.ms += ms
        return self.ms


def reader_of(source: KafkaSource, clock: Clock | None = None, mark: KafkaMark | None = None) -> KafkaReader:
    reader = source.create_reader(None, mark)
    reader._clock = clock or Clock()
    return reader


def drain(reader: KafkaReader) -> list[Message]:
    """All that there is to read now."""
    messages: list[Message] = []
    while reader.advance():
        assert reader.get_current_timestamp().micros == 1000 * min(
            each.publish_time for each in reader.get_current().messages
        )
        messages += reader.get_current().messages
    return messages


def watermark(reader: KafkaReader) -> int:
    return int(reader.get_watermark().micros) // 1000


def sources(messages: Sequence[Message]) -> list[str]:
    return [message.source for message in messages]


# The topic.


@pytest.mark.parametrize(
    ("uri", "servers", "name"),
    [
        ("kafka:localhost:9092/reports", "localhost:9092", "reports"),
        ("kafka:a.b-c:1,10.0.0.1:65535/A.b_c-9", "a.b-c:1,10.0.0.1:65535", "A.b_c-9"),
        ("kafka:[::1]:9092/x", "[::1]:9092", "x"),
        ("kafka:h:1/" + "x" * 249, "h:1", "x" * 249),
    ],
)
def test_a_topic_is_named_by_a_uri(uri: str, servers: str, name: str) -> None:
    assert KafkaTopic.parse(uri) == KafkaTopic(servers, name)
    assert str(KafkaTopic.parse(uri)) == uri


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "kafka:",
        "pubsub:h:1/t",
        "h:1/t",
        "kafka:h/t",
        "kafka:h:0/t",
        "kafka:h:65536/t",
        "kafka:h:1,/t",
        "kafka:h:x/t",
        "kafka::1/t",
        "kafka:h:1 /t",
        "kafka://h:1/t",
    ],
)
def test_what_names_no_broker_is_refused(uri: str) -> None:
    with pytest.raises(KafkaError) as caught:
        KafkaTopic.parse(uri)
    assert str(caught.value) == f"{uri}: not a Kafka topic; write kafka:HOST:PORT/TOPIC"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ü", "a\n", "x" * 250])
def test_what_names_no_topic_is_refused(name: str) -> None:
    with pytest.raises(KafkaError, match="names no topic; letters, digits"):
        KafkaTopic.parse(f"kafka:h:1/{name}")


def test_a_missing_client_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(
        KafkaError, match=r"^kafka: its client is not installed; run: pip install 'uldp-stream\[kafka\]'$"
    ):
        KafkaSource(TOPIC).create_reader(None, None).start()


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (NO_TOPIC, "the topic does not exist; create it"),
        (NO_PERMISSION, "no permission; grant"),
        (TIMED_OUT, "is a broker"),
    ],
)
def test_a_check_that_fails_is_one_line_with_a_remedy(broker: Broker, code: int, remedy: str) -> None:
    broker.refuses = Reason(code)
    with pytest.raises(KafkaError, match=rf"^kafka:broker:9092/reports: {remedy}.* \(reason {code}\)$"):
        TOPIC.check()


def test_a_check_gives_the_partitions(broker: Broker) -> None:
    broker.partitions = {2: [], 0: [], 1: []}
    assert TOPIC.check() == [0, 1, 2]
    assert [consumer.closed for consumer in broker.consumers] == [True]


# Splits.


@pytest.mark.parametrize(("partitions", "desired", "n"), [(1, 20, 1), (3, 20, 3), (20, 20, 20), (7, 3, 3), (5, 1, 1)])
def test_each_partition_has_one_reader(broker: Broker, partitions: int, desired: int, n: int) -> None:
    broker.partitions = {each: [] for each in range(partitions)}
    split = KafkaSource(TOPIC, 5, group="g").split(desired)
    assert len(split) == n
    assert sorted(each for source in split for each in source.partitions) == list(range(partitions))
    assert max(len(source.partitions) for source in split) - min(len(source.partitions) for source in split) <= 1
    assert {replace(source, partitions=()) for source in split} == {KafkaSource(TOPIC, 5, group="g")}
    assert [source.split(20) for source in split] == [[source] for source in split]


def test_one_clock_has_one_reader(broker: Broker) -> None:
    broker.partitions = {0: [], 1: []}
    source = KafkaSource(TOPIC, simulated_clock=True)
    assert source.split(20) == [source]


def test_who_was_not_split_reads_all(broker: Broker) -> None:
    broker.partitions = {0: [NOW], 5: [NOW]}
    assert sources(drain(reader_of(KafkaSource(TOPIC)))) == ["reports/0/0", "reports/5/0"]


# Messages.


def test_messages_come_in_order_with_time_and_source(broker: Broker) -> None:
    broker.partitions, broker.largest = {3: [NOW - 5, NOW - 7, NOW - 1]}, 2
    assert drain(reader_of(KafkaSource(TOPIC, partitions=(3,)))) == [
        Message(b"", NOW - 5, {}, "reports/3/0"),
        Message(b"", NOW - 7, {}, "reports/3/1"),
        Message(b"", NOW - 1, {}, "reports/3/2"),
    ]


@pytest.mark.parametrize(
    ("stamp", "live", "simulated"),
    [
        (NOW + 1, NOW, NOW + 1),
        (LONGEST, NOW, 9223371950454774),  # Beam's last moment
        (-1, 0, 0),
        (-LONGEST, 0, 0),
        (NOW - 1, NOW - 1, NOW - 1),
    ],
)
def test_times_that_cannot_be_are_bounded(broker: Broker, stamp: int, live: int, simulated: int) -> None:
    broker.partitions = {0: [stamp]}
    for simulated_clock, expected in ((False, live), (True, simulated)):
        reader = reader_of(KafkaSource(TOPIC, simulated_clock=simulated_clock))
        assert [message.publish_time for message in drain(reader)] == [expected]
        assert watermark(reader) == max(expected, watermark(reader))


def test_a_message_without_a_body_is_empty(broker: Broker) -> None:
    broker.events = [Raw((0, 0), body=None)]
    assert drain(reader_of(KafkaSource(TOPIC))) == [Message(b"", NOW, {}, "reports/0/0")]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (None, {}),
        ([], {}),
        ([("a", b"x"), ("b", "ü".encode())], {"a": "x", "b": "ü"}),
        ([("a", b"1"), ("a", b"2")], {"a": "2"}),
        ([("a", None), ("", b"")], {"a": "", "": ""}),
        ([("a", b"\xff\x00k")], {"a": "\\xff\x00k"}),
        ([("a", b"\xed\xa0\x80")], {"a": "\\xed\\xa0\\x80"}),  # a surrogate
    ],
)
def test_headers_are_attributes(headers: Any, expected: dict[str, str]) -> None:
    assert attributes(Raw(named=lambda: headers)) == expected


@given(st.lists(st.tuples(st.text(), st.none() | st.binary())))
def test_no_header_is_an_error(headers: list[tuple[str, bytes | None]]) -> None:
    for name, value in attributes(Raw(named=lambda: headers)).items():
        (name + value).encode()


@pytest.mark.parametrize("error", [UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), SystemError("bad")])
def test_header_names_that_the_client_cannot_read_are_left_out(error: Exception) -> None:
    def unreadable() -> None:
        raise error

    assert attributes(Raw(named=unreadable)) == {}


# The watermark.


def test_nothing_is_known_before_something_was_read(broker: Broker) -> None:
    broker.partitions, broker.largest = {0: [NOW - 9000, NOW], 1: [NOW - 8000]}, 1
    reader = reader_of(KafkaSource(TOPIC))
    assert reader.get_watermark() == MIN_TIMESTAMP
    assert reader.start()
    assert reader.get_watermark() == MIN_TIMESTAMP  # of partition 1 nothing was read


def test_the_watermark_is_the_latest_time_less_the_delay(broker: Broker) -> None:
    broker.partitions, broker.largest = {0: [NOW - 9000, NOW - 7000, NOW - 8000, NOW - 6000]}, 1
    reader = reader_of(KafkaSource(TOPIC, 100))
    seen = [watermark(reader) for _ in range(3) if reader.advance()]
    assert seen == [NOW - 9100, NOW - 7100, NOW - 7100]


def test_the_partition_furthest_behind_holds_it(broker: Broker) -> None:
    broker.partitions, broker.largest = {0: [NOW - 1], 1: [NOW - 9000, NOW - 8000, NOW - 7000]}, 2
    reader = reader_of(KafkaSource(TOPIC))
    assert reader.advance()
    assert reader.advance()
    assert watermark(reader) < NOW - 1


def test_an_idle_partition_does_not_hold_it(broker: Broker) -> None:
    broker.partitions, clock = {0: [NOW - 9000], 1: []}, Clock()
    reader = reader_of(KafkaSource(TOPIC, 100), clock)
    drain(reader)
    assert watermark(reader) == NOW - 100
    now = clock.tick(60_000)
    assert drain(reader) == []
    assert watermark(reader) == now - 100


def test_an_idle_partition_does_not_hold_it_while_another_is_busy(broker: Broker) -> None:
    broker.partitions, broker.largest, clock = {0: [], 1: [NOW - 50] * 9}, 1, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    assert not reader.advance()  # that partition 0 is at its end
    for _ in range(3):
        clock.tick()
        assert reader.advance()
    assert watermark(reader) == NOW - 50


def test_what_was_not_fetched_yet_holds_it(broker: Broker) -> None:
    broker.partitions, clock = {0: [NOW]}, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    consumer = broker.consumers[-1]
    consume, consumer.consume = consumer.consume, lambda *_: []  # the broker is asked, and the fetch is slow
    broker.partitions[0].append(NOW + 1)
    clock.tick(60_000)
    assert not reader.advance()
    assert watermark(reader) == NOW
    consumer.consume = consume
    assert [message.publish_time for message in drain(reader)] == [NOW + 1]


def test_a_broker_that_is_away_holds_it_and_fails_nothing(broker: Broker) -> None:
    broker.partitions, clock = {0: [NOW]}, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    broker.partitions[0].append(NOW + 1)
    broker.refuses, broker.events = Reason(TIMED_OUT), [Raw(failed=Reason(ALL_BROKERS_DOWN))]
    clock.tick(60_000)
    assert drain(reader) == []
    assert watermark(reader) == NOW
    broker.refuses = None
    assert sources(drain(reader)) == ["reports/0/1"]
    now = clock.tick()
    drain(reader)
    assert watermark(reader) == now


def test_a_broker_that_is_away_at_first_is_waited_for(broker: Broker) -> None:
    broker.partitions, broker.refuses = {0: [NOW]}, Reason(TIMED_OUT)
    reader = reader_of(KafkaSource(TOPIC, stop_at_end=True))
    assert not reader.start()
    assert reader.get_watermark() == MIN_TIMESTAMP
    assert reader.get_checkpoint_mark().positions == {}
    broker.refuses = None
    assert sources(drain(reader)) == ["reports/0/0"]


def test_a_chunk_is_not_lost_where_the_question_behind_it_fails(broker: Broker) -> None:
    broker.partitions, clock = {0: [NOW], 1: []}, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    clock.tick()
    broker.partitions[0].append(NOW)
    fetched = broker.consumers[-1].consume(10, 0.1)
    broker.events, broker.refuses = fetched, Reason(TIMED_OUT)
    assert reader.advance()
    assert sources(reader.get_current().messages) == ["reports/0/1"]


def test_a_fetch_that_fails_gives_nothing_twice(broker: Broker) -> None:
    def fail(*_: object) -> None:
        raise Failure(Reason(TIMED_OUT))

    broker.partitions = {0: [NOW]}
    reader = reader_of(KafkaSource(TOPIC))
    assert reader.advance()
    broker.consumers[-1].consume = fail
    assert not reader.advance()


def test_it_never_goes_backwards(broker: Broker) -> None:
    broker.partitions, clock = {0: [NOW]}, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    broker.partitions[0].append(NOW - 120_000)
    drain(reader)
    clock.tick(-60_000)
    with CONSUMERS.lend(reader._source, TOPIC) as consumer:
        consumer.asked = 0
    drain(reader)
    assert watermark(reader) == NOW


def test_who_is_behind_is_not_asked_whether_it_is(broker: Broker) -> None:
    broker.partitions, broker.largest, clock = {0: [NOW]}, 1, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    broker.partitions[0] += [NOW + 1] * 3
    assert reader.advance()
    broker.consumers[-1].offsets_for_times = None  # fails who calls it
    clock.tick()
    assert reader.advance()


def test_a_simulated_clock_is_that_of_the_messages(broker: Broker) -> None:
    broker.partitions, clock = {0: [1000, 3000], 1: [], 2: [500]}, Clock()
    reader = reader_of(KafkaSource(TOPIC, 100, simulated_clock=True), clock)
    drain(reader)
    clock.tick(3_600_000)
    drain(reader)
    assert watermark(reader) == 3000 - 100
    broker.partitions[1].append(LATER := 2 * NOW)
    drain(reader)
    clock.tick()
    drain(reader)
    assert watermark(reader) == LATER - 100


# Errors that stay.


@pytest.mark.parametrize("reason", [Reason(NO_TOPIC), Reason(NO_PERMISSION), Reason(TIMED_OUT, dead=True)])
def test_what_no_waiting_heals_fails(broker: Broker, reason: Reason) -> None:
    for at_once in (True, False):
        clock = Clock()
        reader = reader_of(KafkaSource(TOPIC, partitions=(0,)), clock)
        if at_once:
            broker.events = [Raw(failed=reason)]
        else:
            drain(reader)
            broker.refuses = reason  # said only to who asks: the topic was deleted
            clock.tick()
        with pytest.raises(KafkaError, match=rf"^kafka:broker:9092/reports: .*\(reason {reason.number}\)$"):
            reader.advance()


@pytest.mark.parametrize("code", [TIMED_OUT, NO_PARTITION, NO_TOPIC_HERE, ALL_BROKERS_DOWN, 5, 6])
def test_what_waiting_heals_does_not(broker: Broker, code: int) -> None:
    broker.events = [Raw(failed=Reason(code)), Raw((0, 0))]
    assert sources(drain(reader_of(KafkaSource(TOPIC)))) == ["reports/0/0"]


# Marks.


@given(st.dictionaries(st.integers(0, 2**31 - 1), st.builds(Position, *[st.integers(-1, LONGEST)] * 3), max_size=20))
def test_marks_round_trip(positions: dict[int, Position]) -> None:
    mark = KafkaMark(positions, TOPIC, "g")
    coder = KafkaSource(TOPIC, group="g").get_checkpoint_mark_coder()
    assert coder.decode(coder.encode(mark)) == mark
    backwards = KafkaMark(dict(reversed(positions.items())), TOPIC, "g")
    assert coder.encode(backwards) == coder.encode(mark)
    assert coder.is_deterministic()


def test_the_layout_of_marks_is_this() -> None:
    mark = KafkaMark({1: Position(2, 3, 4)}, TOPIC)
    assert KafkaMarkCoder(TOPIC).encode(mark).hex() == "01" + "01000000" + "".join(
        f"{n:02x}" + "00" * 7 for n in (2, 3, 4)
    )


@pytest.mark.parametrize("encoded", [b"", b"\x02", b"\x00" * 29])
def test_marks_of_another_layout_are_refused(encoded: bytes) -> None:
    with pytest.raises(ValueError, match=r"^a Kafka position of layout .*, this is 01; drain the old job first$"):
        KafkaMarkCoder(TOPIC).decode(encoded)


@pytest.mark.parametrize("size", [2, 28, 30])
def test_marks_that_were_cut_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match=rf"^a Kafka position of {size} bytes, which cannot be$"):
        KafkaMarkCoder(TOPIC).decode(b"\x01" + bytes(size - 1))


@pytest.mark.parametrize("chunks", range(5))
def test_a_reader_goes_on_behind_its_mark(broker: Broker, chunks: int) -> None:
    broker.partitions, broker.largest = {0: [NOW + n for n in range(5)], 1: [NOW], 2: []}, 2
    source, clock = KafkaSource(TOPIC, 10), Clock(2 * NOW)
    whole = sources(drain(reader_of(source, clock)))
    first = reader_of(source, clock)
    before = [each for _ in range(chunks) if first.advance() for each in sources(first.get_current().messages)]
    coder = source.get_checkpoint_mark_coder()
    second = reader_of(source, clock, coder.decode(coder.encode(first.get_checkpoint_mark())))
    assert second.get_watermark() == first.get_watermark()
    assert before + sources(drain(second)) == whole


def test_a_mark_does_not_move_with_its_reader(broker: Broker) -> None:
    broker.partitions = {0: [NOW]}
    reader = reader_of(KafkaSource(TOPIC, partitions=(0,)))
    mark = reader.get_checkpoint_mark()
    other = reader_of(KafkaSource(TOPIC, partitions=(0,)), mark=mark)
    drain(reader)
    drain(other)
    assert mark.positions == {0: Position()}


@pytest.mark.parametrize("group", [None, "dashboard"])
def test_a_final_mark_is_told_to_the_group(broker: Broker, group: str | None) -> None:
    broker.partitions, topic = {0: [NOW] * 3, 1: []}, replace(TOPIC, name=f"told-{group}")
    reader = reader_of(KafkaSource(topic, group=group, partitions=(0, 1)))
    reader.get_checkpoint_mark().finalize_checkpoint()
    assert broker.committed == []
    drain(reader)
    reader.close()
    reader.get_checkpoint_mark().finalize_checkpoint()
    assert broker.committed == ([] if group is None else [(0, 3), (1, 0)])


# Many readers of one source.


def connected(broker: Broker) -> list[FakeConsumer]:
    return [consumer for consumer in broker.consumers if not consumer.closed]


def test_a_reader_that_does_not_look_costs_nothing(broker: Broker) -> None:
    source = KafkaSource(TOPIC, partitions=(0,))
    for mark in (None, KafkaMark({0: Position(3)}, TOPIC)):
        source.create_reader(None, mark).close()
    assert broker.consumers == []


def test_a_reader_goes_on_where_the_one_before_it_stands(broker: Broker) -> None:
    broker.partitions, broker.largest = {0: [NOW] * 3, 1: []}, 1
    source, clock, mark, read = KafkaSource(TOPIC, partitions=(0, 1)), Clock(), None, []
    for _ in range(100):
        reader = reader_of(source, clock, mark)
        if reader.start():
            read += sources(reader.get_current().messages)
        mark = reader.get_checkpoint_mark()
        clock.tick()
    assert read == ["reports/0/0", "reports/0/1", "reports/0/2"]
    assert [consumer.assigned for consumer in broker.consumers] == [1]
    # That the partitions are at their ends, the consumer said to another reader.
    assert clock.ms - ASK_SECONDS * 1000 == watermark(reader)


def test_a_reader_takes_the_consumer_back(broker: Broker) -> None:
    broker.partitions, broker.largest = {0: [NOW] * 4}, 1
    source = KafkaSource(TOPIC, partitions=(0,))
    first, second = reader_of(source), reader_of(source)
    read = []
    for reader in (first, first, second, first, second):
        assert reader.advance()
        read += sources(reader.get_current().messages)
        second.close()  # which disconnects nobody
    assert read == [f"reports/0/{offset}" for offset in (0, 1, 0, 2, 1)]
    assert [consumer.assigned for consumer in broker.consumers] == [4]
    assert len(connected(broker)) == 1


def test_who_is_behind_is_not_asked_whether_another_is(broker: Broker) -> None:
    broker.partitions, clock = {0: [NOW - 9000] * 2}, Clock()
    source = KafkaSource(TOPIC, partitions=(0,))
    drain(reader_of(source, clock))
    behind, consumer = reader_of(source, clock), broker.consumers[-1]
    ask, consumer.offsets_for_times = consumer.offsets_for_times, None  # fails who calls it
    consume, consumer.consume = consumer.consume, lambda *_: []  # it is still on its way
    clock.tick()
    assert not behind.advance()
    consumer.offsets_for_times, consumer.consume = ask, consume
    drain(behind)
    assert watermark(behind) == clock.ms


@given(st.data())
def test_each_reader_reads_what_is_behind_its_mark(data: st.DataObject) -> None:
    topic = replace(TOPIC, name="any")
    source = KafkaSource(topic, partitions=(0, 1))
    broker = Broker({0: [], 1: []}, largest=data.draw(st.integers(1, 3)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "confluent_kafka", broker.client_module())
        try:
            # What a reader read, and what those read that its marks come from, must be all up to where it stands.
            histories: list[tuple[KafkaMark | None, list[str]]] = [(None, [])]
            readers: list[tuple[KafkaReader, list[str]]] = []
            for _ in range(data.draw(st.integers(1, 30))):
                if not readers or data.draw(st.booleans()):
                    mark, history = data.draw(st.sampled_from(histories))
                    readers.append((reader_of(source, mark=mark), list(history)))
                reader, history = data.draw(st.sampled_from(readers))
                broker.partitions[data.draw(st.integers(0, 1))] += [NOW] * data.draw(st.integers(0, 3))
                if reader.advance():
                    history += sources(reader.get_current().messages)
                mark = reader.get_checkpoint_mark()
                histories.append((mark, list(history)))
                stands = {each: max(at.next, 0) for each, at in mark.positions.items()}
                assert sorted(history) == sorted(f"any/{each}/{n}" for each in stands for n in range(stands[each]))
            for reader, history in readers:
                for _ in range(3):  # of which one may fetch no more than that a partition ends
                    history += sources(drain(reader))
                assert len(history) == sum(map(len, broker.partitions.values()))
            assert len(broker.consumers) == 1
        finally:
            CONSUMERS.close()


def test_after_an_error_that_stays_nobody_goes_on(broker: Broker) -> None:
    broker.partitions = {0: [NOW]}
    source = KafkaSource(TOPIC, partitions=(0,))
    broker.events = [Raw((0, 0)), Raw(failed=Reason(NO_PERMISSION))]
    with pytest.raises(KafkaError):
        reader_of(source).start()
    assert connected(broker) == []
    assert sources(drain(reader_of(source))) == ["reports/0/0"]


def test_sources_have_consumers_of_their_own(broker: Broker) -> None:
    broker.partitions = {0: [NOW], 1: [NOW]}
    both = [reader_of(KafkaSource(TOPIC, partitions=(each,))) for each in (0, 1)]
    assert [sources(drain(reader)) for reader in both] == [["reports/0/0"], ["reports/1/0"]]
    assert [consumer.assigned for consumer in broker.consumers] == [1, 1]


def test_who_is_not_used_is_closed(broker: Broker) -> None:
    clock = Clock()
    consumers = Consumers(clock)
    for key in ("idle", "busy"):
        with consumers.lend(key, TOPIC):
            pass
    idle, busy = broker.consumers
    for _ in range(4):
        assert not idle.closed
        clock.tick(int(IDLE_SECONDS * 250))
        with consumers.lend("busy", TOPIC):
            pass
    assert (idle.closed, busy.closed) == (True, False)
    with consumers.lend("idle", TOPIC) as lent:
        assert lent.client is broker.consumers[-1] is not idle
        assert lent.stands is None
        consumers.close()  # all but who is in use
        assert connected(broker) == [lent.client]
    consumers.close()
    assert connected(broker) == []


def test_one_at_a_time_uses_a_consumer(broker: Broker) -> None:
    consumers = Consumers()
    with ThreadPoolExecutor(1) as other:

        def borrow() -> list[str]:
            with consumers.lend("key", TOPIC):
                return list(order)

        order = []
        with consumers.lend("key", TOPIC) as lent:
            waiting = other.submit(borrow)
            lent.stand_at({0: 0})
            order.append("first")
        assert waiting.result(10) == ["first"]
    assert len(broker.consumers) == 1
    consumers.close()


# The end.


def test_reading_stops_where_the_end_was(broker: Broker) -> None:
    broker.partitions, broker.largest = {0: [NOW, NOW], 1: [NOW], 2: []}, 1
    source = KafkaSource(TOPIC, stop_at_end=True)
    reader = reader_of(source)
    assert reader.start()
    for times in broker.partitions.values():
        times.append(NOW)
    read = sources(reader.get_current().messages) + sources(drain(reader))
    reader = reader_of(source, mark=reader.get_checkpoint_mark())  # the mark knows the end
    read += sources(drain(reader))
    for _ in range(len(broker.partitions)):
        read += sources(drain(reader))  # which stops where only an end is fetched
    assert read == ["reports/0/0", "reports/0/1", "reports/1/0"]
    assert reader.get_watermark() == MAX_TIMESTAMP
    reader.close()


def test_an_end_that_nobody_knows_yet_is_waited_for(broker: Broker) -> None:
    broker.partitions, broker.leaderless = {0: [NOW], 1: []}, {0}
    reader = reader_of(KafkaSource(TOPIC, stop_at_end=True))
    assert drain(reader) == []
    broker.leaderless = set()
    assert len(drain(reader)) == 1
    assert reader.get_watermark() == MAX_TIMESTAMP


def test_an_idle_partition_whose_end_nobody_knows_holds_the_watermark(broker: Broker) -> None:
    broker.partitions, clock = {0: [NOW]}, Clock()
    reader = reader_of(KafkaSource(TOPIC), clock)
    drain(reader)
    broker.leaderless = {0}
    clock.tick(60_000)
    drain(reader)
    assert watermark(reader) == NOW


def test_the_end_of_a_transaction_is_no_message(broker: Broker) -> None:
    broker.partitions = {0: [NOW, NOW]}
    reader = reader_of(KafkaSource(TOPIC, stop_at_end=True))
    broker.largest = 0
    assert not reader.advance()
    broker.consumers[-1].consume = lambda *_: [Raw((0, 0)), Raw((0, 2), failed=Reason(END_OF_PARTITION))]
    assert reader.advance()
    assert reader.get_watermark() == MAX_TIMESTAMP


def test_a_topic_is_read_by_a_pipeline(broker: Broker) -> None:
    broker.partitions, broker.largest = {each: [NOW + each] * 5 for each in range(3)}, 2
    with beam.Pipeline("FnApiRunner") as pipeline:
        messages = pipeline | ReadFromKafka(KafkaSource(TOPIC, stop_at_end=True))
        expected = [f"reports/{partition}/{offset}" for partition in range(3) for offset in range(5)]
        assert_that(messages | beam.Map(lambda message: message.source), equal_to(expected))


# Writing.


def write(records: list[tuple[bytes, bytes]]) -> None:
    with beam.Pipeline("FnApiRunner") as pipeline:
        _ = pipeline | beam.Create(records) | WriteToKafka(TOPIC)


def test_records_are_written_also_where_the_queue_is_full(broker: Broker) -> None:
    records = [(b"%d" % n, b"value") for n in range(7)]
    write(records)
    assert sorted(broker.written) == [("reports", key, value) for key, value in records]


def test_a_record_that_was_not_delivered_fails_its_bundle(broker: Broker) -> None:
    broker.delivers = Reason(NO_PERMISSION)
    with pytest.raises(Exception, match=r"kafka:broker:9092/reports: no permission; grant .*\(reason 29\)"):
        write([(b"k", b"v")])


def test_a_record_that_the_client_refuses_fails_its_bundle(broker: Broker) -> None:
    with pytest.raises(Exception, match=r"a record is larger than the topic takes; raise its max.message.bytes"):
        write([(b"k", bytes(101))])


def test_what_is_written_survives_a_broker(broker: Broker) -> None:
    settings = TOPIC.producer().settings
    assert (settings["enable.idempotence"], settings["acks"]) == (True, "all")
