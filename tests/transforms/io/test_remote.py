"""Archives and results on another file system: the same messages, the same counts, and one line of what is wrong."""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.io.filesystem import BeamIOError, FileSystem
from apache_beam.testing.util import assert_that, equal_to

from tests.fakes import memory
from uldp.schemas.errors import EndpointError
from uldp.schemas.records import Message
from uldp.transforms.io.archive import message_files
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.io.folders import is_remote
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import StreamError, read_messages, write_messages
from uldp.transforms.io.read_archive import ReadArchive
from uldp.transforms.io.remote import fetched, matching


@pytest.fixture(autouse=True)
def store() -> Iterator[None]:
    yield
    memory.FILES.clear()
    memory.REFUSALS.clear()


def container(*numbers: int) -> bytes:
    file = io.BytesIO()
    write_messages(file, [Message(b"%d" % number, number) for number in numbers])
    return file.getvalue()


@pytest.mark.parametrize("name", ["", "x", "./x.avro", "/tmp/x", "C:\\x", "kafka:host:9092/x", "gs:/bucket"])
def test_a_path_here_is_not_remote(name: str) -> None:
    assert not is_remote(name)
    assert is_remote(f"mem://{name}")


def test_all_below_a_folder_are_its_files_in_order_without_hidden_ones() -> None:
    names = [
        "b/2.avro",
        "b/10.avro",
        "b/deep/er/1.avro",
        "b/.aside.avro",
        "b/deep/.tmp-x.avro",
        "b/note.txt",
        "bb/1.avro",
    ]
    memory.FILES.update({f"mem://{name}": b"" for name in names})
    expected = [f"mem://b/{name}" for name in ("10.avro", "2.avro", "deep/er/1.avro")]
    assert message_files("mem://b") == message_files("mem://b/") == expected
    assert message_files("mem://b/note.txt") == ["mem://b/note.txt"]


@pytest.mark.parametrize("path", ["mem://b", "mem://b/none.avro", "mem://b/2"])
def test_where_there_is_none_is_one_line(path: str) -> None:
    memory.FILES.update({"mem://b/2.txt": b"", "mem://bb/2.avro": b""})
    found = "no such file, and no .avro file below it; check the URL"
    with pytest.raises(StreamError, match=rf"^{path}: {found}(; left out 1 file: .*2.txt\))?$"):
        message_files(path)


def messages_of(chunk: Chunk) -> Sequence[Message]:
    return chunk.messages


def test_an_archive_far_away_is_read_as_one_here(tmp_path: Path) -> None:
    stream = LocalStream.create(tmp_path / "here")
    for numbers in ([1, 2, 3], [4], [5, 6]):
        segment = stream.append([Message(b"%d" % number, number, {"n": str(number)}) for number in numbers])
        memory.FILES[f"mem://there/{segment.name}"] = segment.read_bytes()
    local = [message for file in message_files(stream.path) for message in read_messages(file)]
    with beam.Pipeline("FnApiRunner") as pipeline:
        assert_that(pipeline | ReadArchive("mem://there") | beam.FlatMap(messages_of), equal_to(local))
    assert [message.source for message in local][:4] == [
        f"{0:012}.avro:0",
        f"{0:012}.avro:1",
        f"{0:012}.avro:2",
        f"{1:012}.avro:0",
    ]


def test_a_scheme_that_nobody_knows_is_one_line() -> None:
    with pytest.raises(EndpointError) as refused:
        message_files("nope://b")
    assert str(refused.value) == (
        "nope://b/**: Beam has no file system for nope:// in this environment; use one of azfs://, gs://, hdfs://, s3://"
    )


def test_a_file_system_that_is_not_installed_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FileSystem, "get_all_subclasses", classmethod(lambda _: []))
    with pytest.raises(
        EndpointError,
        match=r"^gs://b/x: Beam has no file system for gs:// in this environment; .*'uldp-stream\[gcp\].*'$",
    ):
        matching("gs://b/x")


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (PermissionError("403 no access\nto this bucket"), "403 no access"),
        (BeamIOError("List operation failed", {"mem://b/": OSError("timed out")}), "timed out"),
        (BeamIOError("Unable to get the Filesystem"), "Unable to get the Filesystem with exceptions None"),
        (RuntimeError(), "RuntimeError()"),
    ],
)
def test_a_store_that_refuses_is_one_line(raised: Exception, said: str) -> None:
    memory.FILES["mem://b/1.avro"] = container(1)
    for url in ("mem://b/", "mem://b/1.avro"):
        memory.REFUSALS[url] = raised
    with pytest.raises(EndpointError) as listed:
        matching("mem://b/*")
    assert str(listed.value) == f"mem://b/*: {said}"
    with pytest.raises(EndpointError) as read, fetched("mem://b/1.avro"):
        pass
    assert str(read.value) == f"mem://b/1.avro: {said}"
