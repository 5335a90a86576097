"""Segments get their names in one step, also where the file system has no hard links."""

import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from uldp.schemas.locks import NoLocksError
from uldp.schemas.records import Message
from uldp.transforms.io.durable_files import publish
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import read_messages


def refusing(number: int) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


@pytest.fixture
def stream(tmp_path: Path) -> LocalStream:
    return LocalStream.create(tmp_path / "stream")


@pytest.fixture
def no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", refusing(errno.EPERM))


def published(stream: LocalStream) -> list[int]:
    return [message.publish_time for segment in stream.segments() for message in read_messages(segment)]


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, None])
def test_segments_have_their_order_without_links(
    number: int | None, stream: LocalStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    if number is None:
        monkeypatch.delattr(os, "link")
    else:
        monkeypatch.setattr(os, "link", refusing(number))
    for time in range(3):
        stream.append([Message(b"", time)])
    assert [segment.name for segment in stream.segments()] == [f"{number:012d}.avro" for number in range(3)]
    assert published(stream) == [0, 1, 2]
    assert len(os.listdir(stream.path)) == 4  # and the settings


def test_another_error_of_a_link_is_not_passed_over(stream: LocalStream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", refusing(errno.ENOSPC))
    with pytest.raises(OSError, match=r"000000000000\.avro: No space left on device; free some space"):
        stream.append([Message(b"", 0)])
    assert os.listdir(stream.path) == ["stream.json"]


@pytest.mark.usefixtures("no_links")
def test_a_name_that_is_taken_is_not_replaced(tmp_path: Path) -> None:
    aside, name = tmp_path / "aside", tmp_path / "name"
    aside.write_bytes(b"new")
    for take in (lambda: name.write_bytes(b"old"), lambda: name.symlink_to("nowhere"), name.mkdir):
        take()
        with pytest.raises(FileExistsError):
            publish(aside, name)
        assert aside.read_bytes() == b"new"
        name.rmdir() if name.is_dir() else name.unlink()


@pytest.mark.usefixtures("no_links")
def test_a_writer_waits_for_another_one_that_has_found_the_name_free(
    stream: LocalStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first stands between its look and its renaming; the second would find the same name free."""
    rename, flock = os.rename, fcntl.flock
    found_free, waits, go_on = threading.Event(), threading.Event(), threading.Event()

    def slow_rename(*names: Any) -> None:
        if not found_free.is_set():
            found_free.set()
            assert go_on.wait(60)
        rename(*names)

    def told(*arguments: Any) -> None:
        if found_free.is_set():
            waits.set()
        flock(*arguments)

    monkeypatch.setattr(os, "rename", slow_rename)
    monkeypatch.setattr(fcntl, "flock", told)
    writers = [
        threading.Thread(target=LocalStream.open(stream.path).append, args=([Message(b"", time)],)) for time in (1, 2)
    ]
    writers[0].start()
    assert found_free.wait(60)
    writers[1].start()
    assert waits.wait(60)
    assert stream.segments() == []
    go_on.set()
    for writer in writers:
        writer.join(60)
    assert published(stream) == [1, 2]


@pytest.mark.usefixtures("no_links")
def test_a_file_system_without_links_and_locks_is_refused(stream: LocalStream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", refusing(errno.ENOLCK))
    with pytest.raises(
        NoLocksError, match=r"^\S+stream: the file system has no locks; choose a folder on a disk of this"
    ):
        stream.append([Message(b"", 0)])
    assert os.listdir(stream.path) == ["stream.json"]


#: Appends as a process that is killed when it comes to a step, and then as another process; prints what is there.
KILLED = """if True:
    import errno, json, os, sys
    from pathlib import Path
    from unittest.mock import patch
    from uldp.schemas.records import Message
    from uldp.transforms.io import durable_files as publish
    from uldp.transforms.io.local import stream as streams
    from uldp.transforms.io.local.stream import LocalStream
    from uldp.transforms.io.message_files import read_messages

    def refuse(*_):
        raise OSError(errno.EPERM, "no links")

    def kill(*_, **__):
        os._exit(9)

    def found(path):
        segments = LocalStream.open(path).segments()
        return [message.publish_time for each in segments for message in read_messages(each)]

    os.link, results = refuse, {}
    for step in json.loads(sys.argv[2]):
        stream = LocalStream.create(Path(sys.argv[1]) / step)
        stream.append([Message(b"before", 1)])
        child = os.fork()
        if child == 0:
            with patch(step, kill):
                stream.append([Message(b"killed", 2)])
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        results[step] = [code, found(stream.path)]
        LocalStream.open(stream.path).append([Message(b"after", 3)])
        results[step].append(found(stream.path))
        results[step].append(stream.missing() == [])
    print(json.dumps(results))
"""
#: Steps until which a killed writer has published nothing, and behind which the segment is there.
BEFORE = ("os.fsync", "os.link", "fcntl.flock", "os.path.lexists", "os.rename")
BEHIND = ("uldp.transforms.io.local.stream.sync_folder",)


def test_a_writer_that_is_killed_at_any_step_leaves_a_whole_segment_or_none(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path), json.dumps([*BEFORE, *BEHIND])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {
        **{step: [9, [1], [1, 3], True] for step in BEFORE},
        **{step: [9, [1, 2], [1, 2, 3], True] for step in BEHIND},
    }


#: Appends to a stream beside others that do so, without links if it is told so.
BESIDE = """if True:
    import errno, os, sys
    from pathlib import Path
    from uldp.schemas.records import Message
    from uldp.transforms.io.local.stream import LocalStream

    def refuse(*_):
        raise OSError(errno.EPERM, "no links")

    os.fsync = os.fstat
    if sys.argv[3] == "no links":
        os.link = refuse
    stream = LocalStream.open(Path(sys.argv[1]))
    for time in range(int(sys.argv[2]), int(sys.argv[2]) + 100):
        stream.append([Message(b"", time)])
"""


@pytest.mark.parametrize("links", ["links", "no links"])
def test_two_processes_lose_nothing_and_a_reader_beside_them_sees_whole_segments(
    links: str, stream: LocalStream
) -> None:
    command = [sys.executable, "-c", BESIDE, str(stream.path)]
    writers = [subprocess.Popen([*command, str(first), links]) for first in (0, 1000)]
    read: list[int] = []
    for segment in stream.follow(0.001):
        if segment is not None:
            read += [message.publish_time for message in read_messages(segment)]
        elif all(writer.poll() is not None for writer in writers) and not stream.closed:
            stream.close()
    assert [writer.wait() for writer in writers] == [0, 0]
    assert sorted(read) == [*range(100), *range(1000, 1100)]
    for first in (0, 1000):  # each in its order
        assert [time for time in read if first <= time < first + 100] == [*range(first, first + 100)]
