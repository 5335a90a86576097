"""The parsers of messages by publish time: before a spec opens, its reports are those of an unknown version.

So what becomes of a report does not depend on when a worker has learned of its spec, if that is before the spec opens:
a message from before has the same verdict, reason and detail as if the spec did not exist.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from uldp.collector.collections import ServedCollection
from uldp.collector.parse import MessageParser
from uldp.schemas.arrays import Times
from uldp.schemas.codec.packed import PackedMessages
from uldp.schemas.specs.collection import CollectionKey


class Openings:
    """Parses each message by the collections that were open when it was published.

    Args:
        served: The served collections; messages of others hold no reports.
    """

    def __init__(self, served: Mapping[CollectionKey, ServedCollection]) -> None:
        self._served = dict(served)
        self._times: Times = np.array(sorted({each.opens for each in served.values()} - {0}), dtype=np.int64)
        self._parsers: dict[int, MessageParser] = {}

    def split(self, messages: PackedMessages) -> Iterator[tuple[PackedMessages, MessageParser]]:
        """Yield the messages with their parser, together those for which the same collections are open."""
        if not len(self._times) or not len(messages):
            yield messages, self._parser(0)
            return
        opened = np.searchsorted(self._times, messages.publish_times, side="right")
        for number in np.unique(opened).tolist():
            rows = np.flatnonzero(opened == number)
            yield messages if len(rows) == len(messages) else messages.take(rows), self._parser(number)

    def _parser(self, opened: int) -> MessageParser:
        """Return the parser for the time after so many openings."""
        if opened not in self._parsers:
            until = int(self._times[opened - 1]) if opened else 0
            self._parsers[opened] = MessageParser(
                {key: each for key, each in self._served.items() if each.opens <= until}
            )
        return self._parsers[opened]
