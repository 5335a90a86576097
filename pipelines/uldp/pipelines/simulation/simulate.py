"""Append the messages of a simulated fleet to a stream, in segments, as fast as possible or paced by a clock."""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np

from uldp.pipelines.simulation.delivery import BATCH_WAIT, publish
from uldp.pipelines.simulation.fleet import Fleet, Summary
from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.durations import milliseconds
from uldp.transforms.io.endpoints import Writer

#: The largest number of messages in a segment; this bounds memory.
MAX_SEGMENT = 1 << 16
#: How many segments a simulation has at most, about, beside full ones: a segment waits for so small a share of all.
_SEGMENTS = 1000
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
    """Append all messages of a fleet to a new stream with a simulated clock, close it, and return a summary.

    ``speed`` is simulated seconds a second; None is as fast as possible. A segment is ``segment_ms`` long; by default a
    sixtieth of a window, or more for few messages, and at most half a real second with a speed. ``progress`` gets the
    users so far. ValueError if speed or length is not positive, or the clock is not simulated.
    """
    if speed is not None and not speed > 0:
        raise RequestError(f"speed must be more than 0, got {speed}")
    least = 1
    waits: int | None = 1
    if segment_ms is None:
        length = milliseconds(fleet.spec.window.size) // _SEGMENTS_PER_WINDOW
        segment_ms = max(length if speed is None else min(length, _real_ms(speed)), 1)
        # A gateway publishes a batch each second at the latest.
        batches = fleet.users // (fleet.batch_size or 1) + fleet.duration_ms // BATCH_WAIT
        least = min(fleet.users, batches) // _SEGMENTS
        waits = None if speed is None else _real_ms(speed) // segment_ms
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
    for number, segment in _segments(messages(), segment_ms, least, waits):
        if speed is not None:
            over = ((number + 1) * segment_ms - fleet.start_ms) / (1000 * speed)
            time.sleep(max(began + over - time.monotonic(), 0))
        stream.append(segment)
    stream.close()
    return sent


def _real_ms(speed: float) -> int:
    """Return how many simulated milliseconds a segment may last at a speed."""
    return int(1000 * speed / _SEGMENTS_PER_SECOND)


def _segments(
    steps: Iterable[EncodedMessages], segment_ms: int, least: int, waits: int | None
) -> Iterator[tuple[int, EncodedMessages]]:
    """Number segments, cut and joined of messages, by their end; with few, they wait for ``waits`` lengths at most."""
    segment, began, last = EncodedMessages.of([]), 0, 0
    for number, part in _parts(steps, segment_ms):
        over = waits is not None and number - began >= waits
        if len(segment) and number > last and (len(segment) >= least or over):
            yield last, segment
            segment = EncodedMessages.of([])
        began = began if len(segment) else number
        segment, last = EncodedMessages.join([segment, part]) if len(segment) else part, number
        while len(segment) > MAX_SEGMENT:
            yield last, segment.cut(0, MAX_SEGMENT)
            segment, began = segment.cut(MAX_SEGMENT, len(segment)), last
    if len(segment):
        yield last, segment


def _parts(steps: Iterable[EncodedMessages], segment_ms: int) -> Iterator[tuple[int, EncodedMessages]]:
    """Cut the messages of each step at the ends of segments."""
    for messages in steps:
        numbers = messages.publish_times // segment_ms
        firsts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
        for first, end in pairwise([*firsts, len(messages)]):
            yield int(numbers[first]), messages.cut(first, end)
