"""Every file below a folder is read, or left out for a reason that is said; nothing is read twice."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from uldp.schemas.records import Message
from uldp.transforms.io.archive import archive_files, message_files
from uldp.transforms.io.archive_files import listed, walked
from uldp.transforms.io.listing import LeftOut, Reason, left_out_text
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import StreamError

HIDDEN, ENDING, TWICE, BROKEN, _ = Reason


def touch(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.write_bytes(b"")


def link(path: Path, target: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


CASES: Mapping[str, tuple[Callable[[Path], object], list[str], dict[Reason, LeftOut]]] = {
    "a folder called as a file of messages": (
        lambda a: touch(a / "day.avro/part-0.avro"),
        ["day.avro/part-0.avro"],
        {},
    ),
    "an ending in capitals": (lambda a: touch(a / "1.AVRO"), ["1.AVRO"], {}),
    "what a job writes": (lambda a: touch(a / "_temporary/0/x.avro"), [], {HIDDEN: LeftOut(1, "_temporary/0/x.avro")}),
    "a sum of Hadoop": (lambda a: touch(a / ".x.avro.crc"), [], {HIDDEN: LeftOut(1, ".x.avro.crc")}),
    "a hidden folder": (lambda a: touch(a / ".old/deep/x.avro"), [], {HIDDEN: LeftOut(1, ".old/deep/x.avro")}),
    "another ending": (lambda a: touch(a / "b/x.avro.gz"), [], {ENDING: LeftOut(1, "b/x.avro.gz")}),
    "a pipe": (lambda a: os.mkfifo(a / "pipe"), [], {ENDING: LeftOut(1, "pipe")}),
    "a linked folder": (lambda a: (touch(a.parent / "far/x.avro"), link(a / "near", "../far")), ["near/x.avro"], {}),
    "a linked file": (lambda a: (touch(a.parent / "far.bin"), link(a / "x.avro", "../far.bin")), ["x.avro"], {}),
    "two links to a folder": (
        lambda a: [touch(a.parent / "far/x.avro"), *(link(a / name, "../far") for name in "pq")],
        ["q/x.avro"],
        {TWICE: LeftOut(1, "p")},
    ),
    "a link to what is there": (lambda a: link(a / "again.avro", "0.avro"), [], {TWICE: LeftOut(1, "again.avro")}),
    "a hard link": (lambda a: os.link(a / "0.avro", a / "1.avro"), [], {TWICE: LeftOut(1, "1.avro")}),
    "a link to itself": (lambda a: link(a / "loop", "loop"), [], {BROKEN: LeftOut(1, "loop")}),
    "a link to its folder": (lambda a: link(a / "b/up", ".."), [], {TWICE: LeftOut(1, "b/up")}),
    "a link to a folder around": (
        lambda a: (touch(a.parent / "x.avro"), link(a / "up", "..")),
        [],
        {TWICE: LeftOut(1, "up")},
    ),
    "a link in a hidden folder": (lambda a: link(a / "_b/up", ".."), [], {HIDDEN: LeftOut(1, "_b/up")}),
    "a link to a hidden file": (
        lambda a: (touch(a / "..data/x"), link(a / "x.avro", "..data/x")),
        ["x.avro"],
        {HIDDEN: LeftOut(1, "..data/x")},
    ),
    "a link to nothing": (lambda a: link(a / "gone", "nowhere"), [], {BROKEN: LeftOut(1, "gone")}),
}


@pytest.mark.parametrize("case", CASES)
def test_each_file_is_read_once_or_left_out(case: str, tmp_path: Path) -> None:
    make, read, left_out = CASES[case]
    archive = tmp_path / "archive"
    touch(archive / "0.avro")
    make(archive)
    found = archive_files(archive)
    assert found.read == [str(archive / name) for name in sorted(["0.avro", *read])]
    assert (found.left_out, found.unreadable) == (left_out, [])


def test_an_archive_may_be_a_link_and_be_below_a_hidden_folder(tmp_path: Path) -> None:
    touch(tmp_path / ".cache/_archive/x.avro")
    link(tmp_path / "it", ".cache/_archive")
    assert message_files(tmp_path / "it") == [str(tmp_path / "it/x.avro")]
    assert message_files(tmp_path / ".cache/_archive") == [str(tmp_path / ".cache/_archive/x.avro")]


def test_one_line_says_what_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("1.avro", "_SUCCESS", "_b", "x\n.csv"):
        touch(tmp_path / name)
    assert message_files(tmp_path) == [str(tmp_path / "1.avro")]
    (line,) = caplog.messages
    assert line == f"{tmp_path}: left out 3 files: 2 {HIDDEN} (as _SUCCESS), 1 {ENDING} (as 'x\\n.csv')"
    assert left_out_text({BROKEN: LeftOut(1, "x")}) == "left out 1 file: 1 linked to nothing (as x)"


@pytest.mark.parametrize("streams", [["."], ["a"], ["a", "b/c"]])
def test_the_files_of_streams_are_their_own(streams: list[str], tmp_path: Path) -> None:
    for name in streams:
        stream = LocalStream.create(tmp_path / name)
        touch(stream.path / "000000000000.avro")
        stream.close()
    touch(tmp_path / "deep/closed")
    assert walked(tmp_path).left_out == {ENDING: LeftOut(1, "deep/closed")}
    urls = [f"mem://a/{path.relative_to(tmp_path)}" for path in tmp_path.rglob("*") if path.is_file()]
    assert listed("mem://a", urls).left_out == walked(tmp_path).left_out


def test_a_name_that_is_no_text_is_named(tmp_path: Path) -> None:
    try:
        (tmp_path / os.fsdecode(b"\xff.avro")).write_bytes(b"")
    except OSError:
        pytest.skip("the file system takes no such name")
    (line,) = walked(tmp_path).unreadable
    assert line.endswith(": its name is no text in UTF-8; rename it")
    assert line.encode()


def test_all_that_is_unreadable_is_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("0.avro", "locked/1.avro", "_hidden/2.avro"):
        touch(tmp_path / name)
    link(tmp_path / "gone.avro", "nowhere")
    listing = os.scandir

    def refuse(path: str | Path) -> object:
        if Path(path).name in ("locked", "_hidden"):
            raise PermissionError(13, "Permission denied")
        return listing(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(StreamError) as refused:
        message_files(tmp_path)
    assert str(refused.value).splitlines() == [
        f"{tmp_path}/locked: Permission denied; check the path and its permissions",
        f"{tmp_path}/gone.avro: No such file or directory; check the path and its permissions",
    ]
    assert walked(tmp_path).left_out == {HIDDEN: LeftOut(1, "_hidden")}


def test_a_store_is_listed_by_the_same_rules() -> None:
    names = ["1.avro", "2.AVRO", "day.avro/3.avro", "day.avro/", "_temporary/4.avro", "b/.5.avro", "b/6.avro.gz"]
    found = listed("mem://b/_a", (f"mem://b/_a/{name}" for name in names))
    assert found.read == [f"mem://b/_a/{name}" for name in names[:3]]
    assert found.left_out == {HIDDEN: LeftOut(2, "_temporary/4.avro"), ENDING: LeftOut(1, "b/6.avro.gz")}


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
