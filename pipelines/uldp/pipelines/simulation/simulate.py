"""Append the messages of a simulated fleet to a stream, in segments, as fast as possible or paced by a clock."""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, pairwise
from operator import itemgetter

import numpy as np

from uldp.pipelines.simulation.delivery import publish
from uldp.pipelines.simulation.fleet import Fleet, Summary
from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.durations import milliseconds
from uldp.transforms.io.endpoints import Writer

#: The largest number of messages in a segment; this bounds memory.
MAX_SEGMENT = 1 << 16
# The watermark advances by one segment at a time, so the length of a segment limits when windows can fire.
_SEGMENTS_PER_WINDOW = 60
_SEGMENTS_PER_SECOND = 2


def simulate(
    fleet: Fleet,
    stream: Writer,
    *,
    speed: float | None = None,
    segment_ms: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Summary:
    """Append all messages of a fleet to a stream, and close the stream.

    Args:
        fleet: The fleet that sends the reports.
        stream: A new stream with a simulated clock.
        speed: Simulated seconds per second; the function writes a segment when its simulated time is over. None for as
            fast as possible.
        segment_ms: Simulated milliseconds of a segment. The default is a sixtieth of a window; if ``speed`` is given,
            it is at most half a second of real time.
        progress: Called with the number of users with published reports.

    Returns:
        A summary of the published reports.

    Raises:
        ValueError: if ``speed`` or ``segment_ms`` is not positive, or the stream's clock is not simulated.
    """
    if speed is not None and not speed > 0:
        raise RequestError(f"speed must be more than 0, got {speed}")
    if segment_ms is None:
        segment_ms = _segment_ms(milliseconds(fleet.spec.window.size), speed)
    elif segment_ms < 1:
        raise RequestError(f"segment_ms must be 1 or more, got {segment_ms}")
    if not stream.simulated_clock:
        raise RequestError("a fleet needs a stream with a simulated clock")
    sent = Summary()

    def messages() -> Iterator[EncodedMessages]:
        nonlocal sent
        for step in publish(fleet):
            yield step.messages
            sent += step.summary
            if progress is not None:
                progress(sent.users)

    began = time.monotonic()
    for number, segment in _segments(messages(), segment_ms):
        if speed is not None:
            over = ((number + 1) * segment_ms - fleet.start_ms) / (1000 * speed)
            time.sleep(max(began + over - time.monotonic(), 0))
        stream.append(segment)
    stream.close()
    return sent


def _segment_ms(window_size: int, speed: float | None) -> int:
    length = window_size / _SEGMENTS_PER_WINDOW
    if speed is not None:
        length = min(length, 1000 * speed / _SEGMENTS_PER_SECOND)
    return max(int(length), 1)


def _segments(steps: Iterable[EncodedMessages], segment_ms: int) -> Iterator[tuple[int, EncodedMessages]]:
    """Cut and join ordered messages into segments, and number the segments by their time."""
    for number, parts in groupby(_parts(steps, segment_ms), key=itemgetter(0)):
        segment = EncodedMessages.of([])
        for _, part in parts:
            segment = EncodedMessages.join([segment, part]) if len(segment) else part
            while len(segment) > MAX_SEGMENT:
                yield number, segment.cut(0, MAX_SEGMENT)
                segment = segment.cut(MAX_SEGMENT, len(segment))
        yield number, segment


def _parts(steps: Iterable[EncodedMessages], segment_ms: int) -> Iterator[tuple[int, EncodedMessages]]:
    """Cut the messages of each step at the ends of segments."""
    for messages in steps:
        numbers = messages.publish_times // segment_ms
        firsts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
        for first, end in pairwise([*firsts, len(messages)]):
            yield int(numbers[first]), messages.cut(first, end)
