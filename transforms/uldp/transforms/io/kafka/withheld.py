"""The messages that brokers withhold: those of an open transaction, and all that follow them in its partition.

A consumer's partition ends where the first open transaction begins, at the last stable offset. So this end says nothing
about the present. A second connection, which reads what is not committed too, asks where the messages end, and when the
first one that is withheld was published: from then on, messages may come.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from uldp.schemas.records import iso
from uldp.transforms.io.kafka.topic import KafkaTopic, library

#: The client's special offsets: the first message that there is, and the position behind the last message.
BEGINNING, END = -2, -1


def offsets(
    client: Any, topic: KafkaTopic, partitions: Iterable[int], which: int, seconds: float
) -> Iterator[tuple[int, int]]:
    """Ask for an offset of each partition, ``BEGINNING`` or ``END``; omit those of which its broker does not know."""
    asked = [library().TopicPartition(topic.name, each, which) for each in partitions]
    for answer in client.offsets_for_times(asked, seconds) if asked else ():
        if answer.error is None and answer.offset >= 0:
            yield answer.partition, answer.offset


@dataclass
class Withheld:
    """Messages of a partition that cannot be read yet."""

    first: int  # offset of the first
    noticed: int  # when a reader first found them, in ms
    since: int = -1  # publish time of the first in ms; -1 if it is not known yet
    said: bool = False  # whether the log has a line about them

    def left(self, topic: KafkaTopic, partition: int, messages: int) -> str:
        """Return the line about so many messages that are behind the end at which reading stops."""
        return (
            f"{topic}: partition {partition} has {messages:,} message{'s' * (messages > 1)} from offset {self.first} on"
            f" that cannot be read yet, because a transaction is open since {self._opened()}; read the topic again when"
            " it has ended"
        )

    def waiting(self, topic: KafkaTopic, partition: int) -> str:
        """Return the line about a job that waits for the messages."""
        return (
            f"{topic}: partition {partition}: a transaction is open since {self._opened()}, so messages from offset"
            f" {self.first} on cannot be read, and all windows wait for them; end it, or run: kafka-transactions.sh"
            f" --bootstrap-server {topic.servers} abort --topic {topic.name} --partition {partition} --start-offset"
            f" {self.first}"
        )

    def _opened(self) -> str:
        """Return the time since when the transaction is open at the latest."""
        return iso(self.noticed if self.since < 0 else self.since)


@dataclass(eq=False)
class Uncommitted:
    """A connection to a topic that gets the messages of open transactions too."""

    topic: KafkaTopic
    #: By partition, the messages that were withheld when a reader last asked.
    withheld: dict[int, Withheld] = field(default_factory=dict)
    _client: Any = None
    _fetched: dict[int, int] = field(default_factory=dict)

    def ends(self, partitions: Iterable[int], seconds: float) -> dict[int, int]:
        """Return the known offsets behind partitions' last messages; a consumer that gets less lacks withheld ones."""
        return dict(offsets(self._connected(), self.topic, partitions, END, seconds))

    def hold(self, partition: int, first: int, now: int) -> Withheld:
        """Note that messages of a partition are withheld from an offset on; ``now`` is in ms."""
        found = self.withheld.get(partition)
        if found is None or found.first != first:
            found = self.withheld[partition] = Withheld(first, now)
        return found

    def date(self, partitions: Iterable[int], seconds: float) -> None:
        """Fetch the first withheld message of partitions for its unknown publish time, further at the next call."""
        wanted = {each: self.withheld[each].first for each in partitions if self.withheld[each].since < 0}
        self._fetch(wanted)
        for raw in self._connected().consume(len(wanted), seconds) if wanted else ():
            held = self.withheld[raw.partition()]
            if raw.error() is None and held.since < 0:
                held.since = max(raw.timestamp()[1], 0)
        self._fetch({each: first for each, first in wanted.items() if self.withheld[each].since < 0})

    def _fetch(self, wanted: dict[int, int]) -> None:
        if wanted != self._fetched:
            partition_at = library().TopicPartition
            self._connected().assign([partition_at(self.topic.name, *each) for each in wanted.items()])
            self._fetched = wanted

    def _connected(self) -> Any:
        if self._client is None:
            self._client = self.topic.uncommitted()
        return self._client

    def close(self) -> None:
        """Disconnect; the next question connects again."""
        client, self._client = self._client, None
        self.withheld.clear()
        self._fetched = {}
        if client is not None:
            client.close()
