"""What a local stream's job is told, and what it knows of where it is."""

from pathlib import Path

import pytest

from uldp.schemas.records import Message
from uldp.transforms.io.archive import LocalStreamEvents, message_files
from uldp.transforms.io.local.stream import LocalStream, StreamError


def test_a_stream_may_be_empty_and_another_directory_may_not(tmp_path: Path) -> None:
    assert message_files(LocalStream.create(tmp_path / "stream").path) == []
    (tmp_path / "other").mkdir()
    with pytest.raises(StreamError, match=r"other: holds no \.avro file of messages"):
        message_files(tmp_path / "other")


def test_events_know_how_far_they_are(tmp_path: Path) -> None:
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    for time in (5_000, 7_000):
        stream.append([Message(b"", time)])
    stream.close()
    with LocalStreamEvents(stream, 1_000) as events:
        assert (events.announced, events.segments, events.messages, events.watermark) == (0, 0, 0, None)
        list(events.Events(None, None))
        events.read(1)
        assert (events.announced, events.segments, events.messages, events.watermark) == (2, 1, 1, 6_000)
