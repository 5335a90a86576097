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

from uldp.schemas.records import KNOWN_ATTRIBUTES, MAX_VALUE_BYTES, NO_ATTRIBUTES, known_attributes
from uldp.transforms.io.chunks import ChunkSize
from uldp.transforms.io.kafka.topic import KafkaTopic, library
from uldp.transforms.io.kafka.withheld import Uncommitted

#: Seconds after which an unused connection is closed.
IDLE_SECONDS = 60.0


@dataclass(eq=False)
class SharedConsumer:
    """A consumer and its positions; a reader must hold the lock to use it. Times are in seconds."""

    topic: KafkaTopic
    client: Any = None  # the library's consumer, while it is connected
    #: Offset of the next message of each assigned partition; None if no partition is assigned.
    positions: dict[int, int] | None = None
    #: Partitions that it has read to their end. The client reports each end only once.
    at_end: set[int] = field(default_factory=set)
    #: Partitions that do not have the offset at which it was to go on. The client reads no more of them.
    out_of_range: set[int] = field(default_factory=set)
    refusals: list[Any] = field(default_factory=list)  # errors of the library that waiting does not resolve
    chunk_size: ChunkSize = field(default_factory=ChunkSize)
    asked: float = 0.0  # when a reader last asked the brokers whether these partitions are still at their end
    looked: float = 0.0  # when a reader last asked them which partitions the topic has
    drained: bool = False  # whether the last fetch took all messages that were available
    behind: dict[int, int] = field(default_factory=dict)  # offsets of partitions with a backlog at the last check
    checked: float = 0.0  # when that check was
    used: float = 0.0  # when a reader last used the consumer
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.uncommitted = Uncommitted(self.topic)  # knows which messages the consumer does not get yet

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
        self.close(unused_for=IDLE_SECONDS)

    def close(self, unused_for: float = 0.0) -> None:
        """Close the consumers that no reader uses now, nor has used for so many seconds."""
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


#: A message with more headers is hostile; all of them would cost as much as thousands of messages.
MAX_HEADERS = 100


def attributes(raw: Any) -> Mapping[str, str]:
    """Return the last ``MAX_HEADERS`` headers of a client's message as attributes; of one name, the last one.

    Bytes that are not text are escaped. If a name is not text, the client cannot read them, and there are none.
    """
    try:
        headers = raw.headers()
    except (UnicodeDecodeError, SystemError):
        return NO_ATTRIBUTES
    if not headers:
        return NO_ATTRIBUTES
    named = {name: value or b"" for name, value in headers[-MAX_HEADERS:] if name in KNOWN_ATTRIBUTES}
    # A cut may fall into a character, so it is behind the bytes that are stored.
    read = {name: value[: 2 * MAX_VALUE_BYTES].decode("utf-8", "backslashreplace") for name, value in named.items()}
    return known_attributes(read)
