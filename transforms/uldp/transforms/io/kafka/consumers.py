"""The Kafka connections of this process: one for each source, however many readers a runner creates for it.

Flink creates a reader for each bundle, several in a second. They share one consumer, which keeps prefetched messages.
"""

import atexit
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from uldp.transforms.io.chunks import ChunkSize
from uldp.transforms.io.kafka.topic import KafkaTopic, library
from uldp.transforms.io.kafka.withheld import Uncommitted

#: Seconds after which an unused connection is closed.
IDLE_SECONDS = 60.0


@dataclass(eq=False)
class SharedConsumer:
    """A consumer and its positions; a reader must hold the lock to use it.

    Attributes:
        topic: The topic that it reads.
        uncommitted: The connection that knows which messages the consumer does not get yet.
        client: The library's consumer, while it is connected.
        positions: Offset of the next message of each assigned partition; None if no partition is assigned.
        at_end: Partitions that it has read to their end. The client reports each end only once.
        out_of_range: Partitions that do not have the offset at which it was to go on. The client reads no more of them.
        refusals: Errors of the library that waiting does not resolve.
        chunk_size: How many messages to request.
        asked: When a reader last asked the brokers whether these partitions are still at their end, in seconds.
        looked: When a reader last asked them which partitions the topic has, in seconds.
        drained: Whether the last fetch took all messages that were available.
        behind: Offsets, at the last check, of the partitions that had a backlog then.
        checked: When that check was, in seconds.
        used: When a reader last used the consumer, in seconds.
        lock: The reader that uses the consumer holds it.
    """

    topic: KafkaTopic
    client: Any = None
    positions: dict[int, int] | None = None
    at_end: set[int] = field(default_factory=set)
    out_of_range: set[int] = field(default_factory=set)
    refusals: list[Any] = field(default_factory=list)
    chunk_size: ChunkSize = field(default_factory=ChunkSize)
    asked: float = 0.0
    looked: float = 0.0
    drained: bool = False
    behind: dict[int, int] = field(default_factory=dict)
    checked: float = 0.0
    used: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.uncommitted = Uncommitted(self.topic)

    def seek(self, offsets: Mapping[int, int]) -> None:
        """Continue at other offsets, or the client's special values below 0; at equal ones prefetched messages stay."""
        if offsets != self.positions:
            partition_at = library().TopicPartition
            self.positions = None
            self.client.assign([partition_at(self.topic.name, *each) for each in offsets.items()])
            self.positions = dict(offsets)
            self.at_end.clear()
            self.out_of_range.clear()

    def close(self) -> None:
        """Disconnect; the next reader that uses the consumer connects it again."""
        client, self.client, self.positions = self.client, None, None
        self.asked = self.looked = self.checked = 0.0
        self.at_end.clear()
        self.out_of_range.clear()
        self.behind.clear()
        self.refusals.clear()
        self.uncommitted.close()
        if client is not None:
            client.close()


class Consumers:
    """Shared consumers by key; they are closed at the latest when the process ends."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._consumers: dict[Hashable, SharedConsumer] = {}

    @contextmanager
    def acquire(self, key: Hashable, topic: KafkaTopic) -> Iterator[SharedConsumer]:
        """Give a key's consumer to one reader at a time; an error closes it, because its position is then unknown."""
        with self._lock:
            if not self._consumers:
                atexit.register(self.close)
            consumer = self._consumers.setdefault(key, SharedConsumer(topic))
        with consumer.lock:
            try:
                if consumer.client is None:
                    consumer.client = topic.consumer(consumer.refusals.append)
                yield consumer
            except BaseException:
                consumer.close()
                raise
            finally:
                consumer.used = self._clock()
        self._close(unused_for=IDLE_SECONDS)

    def close(self) -> None:
        """Close all consumers that no reader uses now."""
        self._close(unused_for=0.0)

    def _close(self, unused_for: float) -> None:
        with self._lock:
            consumers = list(self._consumers.values())
        for each in consumers:
            if each.client is not None and each.lock.acquire(blocking=False):
                try:
                    if self._clock() - each.used >= unused_for:
                        each.close()
                finally:
                    each.lock.release()


CONSUMERS = Consumers()
