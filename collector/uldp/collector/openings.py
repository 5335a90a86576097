"""The parsers of messages by publish time: before a spec opens, its reports are those of an unknown version.

So what becomes of a report does not depend on when a worker has learned of its spec, if that is before the spec opens:
a message from before has the same verdict, reason and detail as if the spec did not exist.
"""

from collections.abc import Iterator

import numpy as np

from uldp.collector.parse import MessageParser
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.arrays import Times
from uldp.schemas.codec.packed import PackedMessages


class Openings:
    """Parses each message by the collections that were open when it was published.

    Args:
        specs: The specs as they are now; messages of other collections hold no reports.

    Attributes:
        edition: That of the specs.
    """

    def __init__(self, specs: SharedSpecs) -> None:
        self.edition = specs.edition  # first of all: if the specs change meanwhile, this is not their newest edition
        self._served = dict(specs.served)
        self._times: Times = np.array(sorted({each.opens for each in self._served.values()} - {0}), dtype=np.int64)
        self._parsers: dict[int, MessageParser] = {}

    def split(self, messages: PackedMessages) -> Iterator[tuple[PackedMessages, MessageParser]]:
        """Yield the messages with their parser, together those for which the same collections are open."""
        if not len(messages):
            return
        times = messages.publish_times
        first, last = np.searchsorted(self._times, [times.min(), times.max()], side="right").tolist()
        opened = np.searchsorted(self._times, times, side="right") if first < last else None
        for number in [first] if opened is None else np.unique(opened).tolist():
            if number not in self._parsers:
                until = int(self._times[number - 1]) if number else 0
                served = {key: each for key, each in self._served.items() if each.opens <= until}
                self._parsers[number] = MessageParser(served)
            some = messages if opened is None else messages.take(np.flatnonzero(opened == number))
            yield some, self._parsers[number]
