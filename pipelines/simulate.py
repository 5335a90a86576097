"""Simulation into a local stream: what a fleet publishes, as segments, as fast as possible or paced by a clock."""

import time
from collections.abc import Callable, Iterator
from itertools import groupby, islice

from pipelines.fleet import Fleet, Summary
from pipelines.network import publish
from schemas.durations import milliseconds
from schemas.records import Message
from transforms.localstream import LocalStream

#: Messages of a segment at the most; bounds its memory.
MAX_SEGMENT = 1 << 16
# A segment is a step of the watermark, and with it of the windows.
_SEGMENTS_PER_WINDOW = 60
_SEGMENTS_PER_SECOND = 2


def simulate(
    fleet: Fleet,
    stream: LocalStream,
    *,
    speed: float | None = None,
    segment_ms: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Summary:
    """Append what a fleet publishes to a local stream, and close the stream.

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
        raise ValueError(f"{stream.path}: the publish times of a fleet need a stream with a simulated clock")
    sent = Summary()

    def messages() -> Iterator[Message]:
        nonlocal sent
        for step in publish(fleet):
            yield from step.messages
            sent += step.summary
            if progress is not None:
                progress(sent.users)

    began = time.monotonic()
    for number, segment in groupby(messages(), lambda message: message.publish_time // segment_ms):
        if speed is not None:
            over = ((number + 1) * segment_ms - fleet.start_ms) / (1000 * speed)
            time.sleep(max(began + over - time.monotonic(), 0))
        while part := list(islice(segment, MAX_SEGMENT)):
            stream.append(part)
    stream.close()
    return sent


def _segment_ms(window_size: int, speed: float | None) -> int:
    length = window_size / _SEGMENTS_PER_WINDOW
    if speed is not None:
        length = min(length, 1000 * speed / _SEGMENTS_PER_SECOND)
    return max(int(length), 1)
