"""A Kafka broker that is a few lists, with the client library on top of it, and readers of it."""

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.build import START
from uldp.schemas.records import Message, Missing
from uldp.transforms.io.kafka.checkpoint import KafkaMark
from uldp.transforms.io.kafka.consumers import CONSUMERS
from uldp.transforms.io.kafka.reader import ASK_SECONDS, KafkaReader
from uldp.transforms.io.kafka.source import KafkaSource
from uldp.transforms.io.kafka.topic import KafkaTopic

TOPIC = KafkaTopic("broker:9092", "reports")
#: The present, in ms.
NOW = START
LONGEST = 2**63 - 1
NO_TOPIC, TOO_LARGE, NO_PERMISSION = 3, 10, 29
CREDENTIALS, TLS, INVALID = -169, -181, -186
ALL_BROKERS_DOWN, END_OF_PARTITION, TIMED_OUT, NO_PARTITION, NO_TOPIC_HERE = -187, -191, -185, -190, -188
BEGINNING, END = -2, -1
OUT_OF_RANGE, PURGED = -140, -152
CREATE_TIME, LOG_APPEND_TIME = 1, 2


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
    kind: int = LOG_APPEND_TIME

    def partition(self) -> int:
        return self.at[0]

    def offset(self) -> int:
        return self.at[1]

    def timestamp(self) -> tuple[int, int]:
        return self.kind, self.time

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
        removed: How many of the first messages of each were removed by its retention.
        open: Where the first open transaction of a partition begins; who reads what is committed gets nothing behind.
        refuses: What every question is answered with.
        meets: What a client meets on the way, and is told before it is answered.
        permits: The operations that are permitted, if the broker says so.
        events: What the next fetch gives beside messages.
        leaderless: Partitions of which nobody knows the end.
        largest: How many messages a fetch gives.
        body: What each message holds.
        bodies: What the messages of a partition hold instead.
        kind: The kind of each message's timestamp.
        consumers: All that were connected, but those that get what is not committed.
        uncommitted: These.
        written: What was written: topic, key and value.
        options: The other arguments of each record.
        room: How many records the producer's queue holds.
        committed: What a group was told: (partition, offset).
    """

    partitions: dict[int, list[int]]
    removed: dict[int, int] = field(default_factory=dict)
    open: dict[int, int] = field(default_factory=dict)
    refuses: Reason | None = None
    meets: list[Reason] = field(default_factory=list)
    permits: set[str] | None = None
    events: list[Raw] = field(default_factory=list)
    leaderless: set[int] = field(default_factory=set)
    largest: int = 1000
    body: bytes = b""
    bodies: dict[int, list[bytes]] = field(default_factory=dict)
    kind: int = LOG_APPEND_TIME
    consumers: list[Any] = field(default_factory=list)
    uncommitted: list[Any] = field(default_factory=list)
    written: list[tuple[str, bytes, bytes]] = field(default_factory=list)
    options: list[dict[str, Any]] = field(default_factory=list)
    room: int = 2
    delivers: Reason | None = None
    committed: list[tuple[int, int]] = field(default_factory=list)

    def client_modules(self) -> dict[str, ModuleType]:
        """The library, by the names under which it is imported."""

        def partition(topic: str, partition: int, offset: int = 0) -> Any:
            return SimpleNamespace(topic=topic, partition=partition, offset=offset, error=None)

        module = ModuleType("confluent_kafka")
        names = {"KafkaException": Failure, "TopicPartition": partition}
        names |= {"Consumer": self._connected(FakeConsumer), "Producer": self._connected(FakeProducer)}
        admin = ModuleType("confluent_kafka.admin")
        vars(admin).update(AdminClient=self._connected(FakeAdmin))
        vars(module).update(names, TopicCollection=list, admin=admin)
        return {module.__name__: module, admin.__name__: admin}

    def _connected(self, client: type) -> Callable[..., Any]:
        def connected(settings: dict[str, Any], logger: object) -> Any:
            if "wrong" in settings:
                raise Failure(Reason(INVALID))
            return client(self, settings)

        return connected

    def append(self, partition: int, *messages: Message) -> None:
        """Append messages to a partition all of whose messages came in this way."""
        self.partitions[partition] += [message.publish_time for message in messages]
        self.bodies.setdefault(partition, []).extend(message.data for message in messages)

    def body_at(self, partition: int, offset: int) -> bytes:
        """What a message holds."""
        return self.bodies[partition][offset] if partition in self.bodies else self.body

    def tell(self, settings: dict[str, Any]) -> None:
        """Tell a client what it met."""
        met, self.meets = self.meets, []
        for reason in met:
            settings["error_cb"](reason)


@dataclass
class FakeAdmin:
    broker: Broker
    settings: dict[str, Any]
    asked: Future[Any] = field(default_factory=Future)

    def describe_topics(
        self, topics: list[str], include_authorized_operations: bool, request_timeout: float
    ) -> dict[str, Future[Any]]:
        assert include_authorized_operations
        assert request_timeout > 0
        (name,) = topics
        return {name: self.asked}

    def poll(self, timeout: float) -> None:
        assert timeout > 0
        if self.broker.meets:
            self.broker.tell(self.settings)
        elif self.broker.refuses is not None:
            self.asked.set_exception(Failure(self.broker.refuses))
        else:
            permits = self.broker.permits
            operations = None if permits is None else [SimpleNamespace(name=operation) for operation in permits]
            partitions = [SimpleNamespace(id=each) for each in self.broker.partitions]
            self.asked.set_result(SimpleNamespace(partitions=partitions, authorized_operations=operations))


@dataclass
class FakeConsumer:
    broker: Broker
    settings: dict[str, Any]
    next: dict[int, int] = field(default_factory=dict)
    told: set[tuple[int, int]] = field(default_factory=set)
    closed: bool = False
    assigned: int = 0

    def __post_init__(self) -> None:
        self.gets_all = self.settings.get("isolation.level") == "read_uncommitted"
        (self.broker.uncommitted if self.gets_all else self.broker.consumers).append(self)

    def _end(self, partition: int) -> int:
        end = len(self.broker.partitions[partition])
        return end if self.gets_all else self.broker.open.get(partition, end)

    def _ask(self) -> None:
        if self.broker.refuses is not None:
            raise Failure(self.broker.refuses)

    def list_topics(self, name: str, timeout: float) -> Any:
        assert timeout > 0
        self._ask()
        return SimpleNamespace(topics={name: SimpleNamespace(error=None, partitions=dict(self.broker.partitions))})

    def offsets_for_times(self, asked: list[Any], timeout: float) -> list[Any]:
        assert 0 < timeout < 1
        self._ask()
        for each in asked:
            known, first = each.partition not in self.broker.leaderless, self.broker.removed.get(each.partition, 0)
            found = {BEGINNING: first, END: self._end(each.partition)}[each.offset]
            each.offset = found if known else -1
            each.error = None if known else Reason(6)
        return asked

    def assign(self, partitions: list[Any]) -> None:
        self.assigned += 1
        self.told.clear()
        removed = self.broker.removed
        self.next = {
            each.partition: removed.get(each.partition, 0) if each.offset == BEGINNING else each.offset
            for each in partitions
        }

    def consume(self, most: int, timeout: float) -> list[Raw]:
        assert 0 < timeout < 1
        self.broker.tell(self.settings)
        fetched, self.broker.events = self.broker.events, []
        for partition, times in self.broker.partitions.items() if self.broker.refuses is None else ():
            if partition not in self.next:
                continue
            if not self.broker.removed.get(partition, 0) <= self.next[partition] <= len(times):
                fetched.append(Raw((partition, self.next.pop(partition)), failed=Reason(OUT_OF_RANGE)))
                continue
            times = times[: self._end(partition)]
            for time in times[self.next[partition] :][: min(most, self.broker.largest) - len(fetched)]:
                at = (partition, self.next[partition])
                fetched.append(Raw(at, time, self.broker.body_at(*at), kind=self.broker.kind))
                self.next[partition] += 1
            at = (partition, self.next[partition])
            if self.next[partition] == len(times) and at not in self.told:
                self.told.add(at)  # once
                fetched.append(Raw(at, failed=Reason(END_OF_PARTITION)))
        return fetched

    def poll(self, timeout: float) -> None:
        assert (timeout, self.next) == (0, {})  # it would take a message
        self.broker.tell(self.settings)

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

    def produce(self, topic: str, value: bytes, key: bytes, on_delivery: Any, **options: Any) -> None:
        if len(self.waiting) >= self.broker.room:
            raise BufferError
        if len(value) > 100:
            raise Failure(Reason(TOO_LARGE))
        self.waiting.append((topic, key, value, on_delivery))
        self.broker.options.append(options)

    def poll(self, timeout: float) -> None:
        if timeout:
            self.flush(timeout)

    def flush(self, timeout: float) -> int:
        assert timeout > 0
        self.broker.tell(self.settings)
        if self.broker.refuses is not None:
            return len(self.waiting)
        for topic, key, value, on_delivery in self.waiting:
            if self.broker.delivers is None:
                self.broker.written.append((topic, key, value))
            on_delivery(self.broker.delivers, None)
        self.waiting = []
        return 0

    def purge(self) -> None:
        for *_, on_delivery in self.waiting:
            on_delivery(Reason(PURGED), None)
        self.waiting = []


@dataclass
class Clock:
    ms: int = NOW

    def __call__(self) -> float:
        return self.ms / 1000

    def tick(self, ms: int = int(ASK_SECONDS * 1000)) -> int:
        self.ms += ms
        return self.ms


@contextmanager
def serving(broker: Broker) -> Iterator[Broker]:
    """Let the client library know a broker alone, and end with no consumer of it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, module in broker.client_modules().items():
            patch.setitem(sys.modules, name, module)
        # No consumer of a test before this one, which has learned how many messages to ask for.
        patch.setattr(CONSUMERS, "_consumers", {})
        try:
            yield broker
        finally:
            CONSUMERS.close()


def reader_of(source: KafkaSource, clock: Clock | None = None, mark: KafkaMark | None = None) -> KafkaReader:
    reader = source.create_reader(None, mark)
    reader._clock = clock or Clock()
    return reader


def resumed(reader: KafkaReader, clock: Clock) -> KafkaReader:
    """A reader that goes on at the mark of another one, as a job does after a restart."""
    coder = reader._source.get_checkpoint_mark_coder()
    return reader_of(reader._source, clock, coder.decode(coder.encode(reader.get_checkpoint_mark())))


def drain(reader: KafkaReader, missing: list[Missing] | None = None) -> list[Message]:
    """All that there is to read now; what is named as lost is added to ``missing``."""
    messages: list[Message] = []
    while reader.advance():
        chunk = reader.get_current()
        assert reader.get_current_timestamp().micros == 1000 * min(
            [*(each.publish_time for each in chunk.messages), *(each.before for each in chunk.missing)]
        )
        messages += chunk.messages
        if missing is not None:
            missing += chunk.missing
    return messages


def watermark(reader: KafkaReader) -> int:
    return int(reader.get_watermark().micros) // 1000


def sources(messages: Sequence[Message]) -> list[str]:
    return [message.source for message in messages]


def connected(broker: Broker) -> list[FakeConsumer]:
    return [consumer for consumer in broker.consumers if not consumer.closed]
