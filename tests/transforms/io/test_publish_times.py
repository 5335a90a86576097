"""The publish times that readers give: never before their watermark, and never in the future of a real clock."""

from pathlib import Path

import pytest
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp
from hypothesis import given
from hypothesis import strategies as st

from uldp.schemas.records import Message
from uldp.transforms.io.local.events import LocalStreamEvents
from uldp.transforms.io.local.read_stream import _ReadSegmentsFn
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.publish_times import LATEST, bounded, bounded_messages

NOW = 1_767_603_600_000
DAY = 86_400_000
TIMES = st.integers(-(2**63), 2**63 - 1)


@given(TIMES, TIMES, st.integers(0, LATEST))
def test_a_publish_time_is_not_before_the_watermark_and_otherwise_not_after_now(
    published: int, watermark: int, now: int
) -> None:
    given = bounded(published, watermark, now)
    assert given >= watermark
    assert given in {published, watermark, now, 0}
    assert given <= now or given == watermark


@given(st.lists(TIMES), TIMES, st.integers(0, LATEST))
def test_messages_that_come_together_are_bounded_each(times: list[int], watermark: int, now: int) -> None:
    messages = [Message(bytes([index % 256]), time, {"a": "b"}, str(index)) for index, time in enumerate(times)]
    assert list(bounded_messages(messages, watermark, now)) == [
        message._replace(publish_time=bounded(message.publish_time, watermark, now)) for message in messages
    ]


@pytest.mark.parametrize("jump", [-3 * DAY, 3 * DAY])
def test_a_local_stream_gives_nothing_before_its_watermark_when_the_clock_jumps(tmp_path: Path, jump: int) -> None:
    LocalStream.create(tmp_path / "stream")
    stream, now = LocalStream.open(tmp_path / "stream", clock=lambda: now / 1000), NOW
    with LocalStreamEvents(stream, 1000, []) as events:
        announced = events.Events(None, None)
        reader = _ReadSegmentsFn(events)
        reader.start_bundle()
        for moment in (NOW, NOW + jump, NOW):
            now = moment
            stream.append([Message(b"", moment - 2 * DAY), Message(b"", moment), Message(b"", moment + 9 * DAY)])
            (element,) = next(event for event in announced if event.HasField("element_event")).element_event.elements
            before = events.watermark
            assert element.timestamp == (MIN_TIMESTAMP.micros if before is None else 1000 * before)
            (chunk,) = reader.process(element.encoded_element.decode(), Timestamp(micros=element.timestamp))
            assert [message.publish_time for message in chunk.messages] == [
                bounded(moment + offset, before or 0, moment) for offset in (-2 * DAY, 0, 9 * DAY)
            ]
