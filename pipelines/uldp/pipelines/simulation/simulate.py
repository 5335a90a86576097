"""Simulation into a stream: what a fleet publishes, in segments, as fast as possible or paced by a clock."""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, pairwise
from operator import itemgetter

import numpy as np

from uldp.pipelines.simulation.delivery import publish
from uldp.pipelines.simulation.fleet import Fleet, Summary
from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.durations import milliseconds
from uldp.transforms.io.endpoints import Writer

#: Messages of a segment at the most; bounds its memory.
MAX_SEGMENT = 1 << 16
# A segment is a step of the watermark, and with it of the windows.
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
    """Append what a fleet publishes to a stream, and close it.

    Args:
        fleet: Who sends what.
        stream: A new stream with a simulated clock.
        speed: Simulated seconds per second: a segment is written when its time is over. None for as fast as possible.
        segment_ms: Simulated milliseconds of a segment. By default a sixtieth of a window, and at a given ``speed`` no
            more than half a second of real time.
        progress: Called with the number of users whose reports have been published.

    Returns:
        What was sent.

    Raises:
        ValueError: if ``speed`` or ``segment_ms`` is not positive, or the stream's clock is not simulated.
    """
    if speed is not None and not speed > 0:
        raise ValueError(f"speed must be more than 0, got {speed}")
    if segment_ms is None:
        segment_ms = _segment_ms(milliseconds(fleet.spec.window.size), speed)
    elif segment_ms < 1:
        raise ValueError(f"segment_ms must be 1 or more, got {segment_ms}")
    if not stream.simulated_clock:
        raise ValueError("the publish times of a fleet need a stream with a simulated clock")
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
    """Cut and join messages, which are in order, into segments, and number these by their time."""
    for number, parts in groupby(_parts(steps, segment_ms), key=itemgetter(0)):
        segment = EncodedMessages.of([])
        for _, part in parts:
            segment = EncodedMessages.join([segment, part]) if len(segment) else part
            while len(segment) > MAX_SEGMENT:
                yield number, segment.cut(0, MAX_SEGMENT)
                segment = segment.cut(MAX_SEGMENT, len(segment))
        yield number, segment


def _parts(steps: Iterable[EncodedMessages], segment_ms: int) -> Iterator[tuple[int, EncodedMessages]]:
    """Cut each step where a segment ends."""
    for messages in steps:
        numbers = messages.publish_times // segment_ms
        firsts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
        for first, end in pairwise([*firsts, len(messages)]):
            yield int(numbers[first]), messages.cut(first, end)
