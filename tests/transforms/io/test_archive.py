"""Which directories hold messages."""

from pathlib import Path

import pytest

from uldp.schemas.records import Message
from uldp.transforms.io.archive import message_files
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import StreamError


def test_a_stream_may_be_empty_and_another_directory_may_not(tmp_path: Path) -> None:
    assert message_files(LocalStream.create(tmp_path / "stream").path) == []
    (tmp_path / "other").mkdir()
    with pytest.raises(StreamError, match=r"other: holds no \.avro file of messages"):
        message_files(tmp_path / "other")


def test_results_are_no_archive_and_what_was_late_is(tmp_path: Path) -> None:
    (tmp_path / "late").mkdir()
    LocalStream.create(tmp_path / "stream").append([Message(b"", 5_000)])
    (segment,) = (tmp_path / "stream").glob("*.avro")
    segment.rename(tmp_path / "late" / "late.avro")
    (tmp_path / "job.json").write_text("{}", encoding="utf-8")
    with pytest.raises(StreamError, match=rf"holds results; give a directory that holds messages, such as {tmp_path}/"):
        message_files(tmp_path)
    assert message_files(tmp_path / "late") == [str(tmp_path / "late" / "late.avro")]
