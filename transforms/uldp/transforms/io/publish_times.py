"""Publish times that agree with the watermark of the reader that gives the messages.

The decoder judges by publish time whether a report is late, and counts and keeps it if it is. Beam judges by its
watermark whether to drop an element, and says nothing. So a stream loses reports in silence if the watermark is far
ahead of their publish times: a sender wrote a time in the future, a clock was set back, or a broker gave a backlog.

Each reader of ours therefore gives a message no publish time before the watermark that the reader had announced when it
fetched the message. Beam's watermark is the earliest of all readers' watermarks, and waits for elements that are under
way. So it is not ahead of the publish time, and what Beam would drop, the decoder has called late before.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from uldp.collector.collections import YEAR_9000
from uldp.schemas.arrays import Times
from uldp.schemas.codec.packed import PackedMessages
from uldp.schemas.records import Message

#: The latest publish time of a simulation, in milliseconds: the decoder admits no later one. On a real clock, the
#: present is the latest.
LATEST = YEAR_9000 - 1


def bounded(published: int, watermark: int, latest: int) -> int:
    """Return the publish time of a message, in ms: from the announced watermark to the present, or ``LATEST``.

    A later time is not true, and would take the watermark there. The watermark prevails over the present, because a
    clock may be set back, or be ahead elsewhere.

    >>> [bounded(published, 500, 900) for published in (-1, 499, 700, 901)], bounded(100, 500, 300)
    ([500, 500, 700, 900], 500)
    """
    return max(min(published, latest), watermark, 0)


def bounded_messages(messages: Sequence[Message], watermark: int, latest: int) -> PackedMessages:
    """Bound the publish times of messages that were fetched together."""
    packed = PackedMessages.of(messages)
    return replace(packed, publish_times=bounded_times(packed.publish_times, watermark, latest))


def bounded_times(published: Times, watermark: int, latest: int) -> Times:
    """Bound each of several publish times, as ``bounded`` does one."""
    return np.maximum(np.minimum(published, latest), max(watermark, 0))
