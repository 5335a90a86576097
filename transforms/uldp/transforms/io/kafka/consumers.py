"""The connections to Kafka of this process: one for each source, however many readers a runner makes of it.

Flink makes a reader for each bundle, several in a second, and closes them minutes later. What they read with is lent
to them instead, and keeps what it has fetched ahead from one to the next.
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

#: Seconds after which a connection that nobody used is closed.
IDLE_SECONDS = 60.0


@dataclass(eq=False)
class SharedConsumer:
    """A consumer, and what it knows of where it stands; used by who holds its lock.

    Attributes:
        topic: What it reads.
        client: The library's, while it is connected.
        stands: Offset of the next message of each partition that is assigned to it; None where none is.
        at_end: Partitions of which it gave all that there was. It says so once.
        refusals: What it met that no waiting heals, as the library's errors.
        chunk_size: How much to ask it for.
        asked: When it was asked last whether there is more, in seconds.
        drained: Whether the last fetch took all that was there for it.
        behind: Where it stood in partitions that had more when they were looked at last.
        looked: When that was, in seconds.
        used: When it was lent last, in seconds.
        lock: Held by who uses it.
    """

    topic: KafkaTopic
    client: Any = None
    stands: dict[int, int] | None = None
    at_end: set[int] = field(default_factory=set)
    refusals: list[Any] = field(default_factory=list)
    chunk_size: ChunkSize = field(default_factory=ChunkSize)
    asked: float = 0.0
    drained: bool = False
    behind: dict[int, int] = field(default_factory=dict)
    looked: float = 0.0
    used: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def stand_at(self, offsets: Mapping[int, int]) -> None:
        """Go on at these offsets, where negative ones stand for one that has a meaning to the client.

        What was fetched ahead is kept if they are where it stands.
        """
        if offsets != self.stands:
            partition_at = library().TopicPartition
            self.stands = None
            self.client.assign([partition_at(self.topic.name, *each) for each in offsets.items()])
            self.stands = dict(offsets)
            self.at_end.clear()

    def close(self) -> None:
        """Disconnect; who is lent it next connects anew."""
        client, self.client, self.stands = self.client, None, None
        self.asked = self.looked = 0.0
        self.at_end.clear()
        self.behind.clear()
        self.refusals.clear()
        if client is not None:
            client.close()


class Consumers:
    """Consumers by what is read with them; closed when the process ends at the latest."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._consumers: dict[Hashable, SharedConsumer] = {}

    @contextmanager
    def lend(self, key: Hashable, topic: KafkaTopic) -> Iterator[SharedConsumer]:
        """Lend the consumer of a key to one at a time. It is closed on an error: nobody knows where it stands then.

        Raises:
            KafkaError: if the client is not installed.
        """
        with self._lock:
            if not self._consumers:
                atexit.register(self.close)
            lent = self._consumers.setdefault(key, SharedConsumer(topic))
        with lent.lock:
            try:
                if lent.client is None:
                    lent.client = topic.consumer(lent.refusals.append)
                yield lent
            except BaseException:
                lent.close()
                raise
            finally:
                lent.used = self._clock()
        self._close(unused_for=IDLE_SECONDS)

    def close(self) -> None:
        """Close all that nobody uses now."""
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
