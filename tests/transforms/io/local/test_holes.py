"""A stream whose numbers have a gap is named as such, by whoever reads it."""

import json
from pathlib import Path

import pytest

from uldp.schemas.records import Message
from uldp.transforms.io.archive import message_files
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import StreamError

SEGMENTS = 5


def removed(path: Path, *numbers: int, closed: bool = True) -> LocalStream:
    """A stream of five segments that lacks some of them."""
    stream = LocalStream.create(path)
    segments = [stream.append([Message(b"", number)]) for number in range(SEGMENTS)]
    if closed:
        stream.close()
    for number in numbers:
        segments[number].unlink()
    return LocalStream.open(path)


def edited(stream: LocalStream, **settings: object) -> LocalStream:
    """The stream, with other settings."""
    path = stream.path / "stream.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    return LocalStream.open(stream.path)


def read(stream: LocalStream) -> list[int]:
    return [int(segment.stem) for segment in stream.follow(0) if segment is not None]


@pytest.mark.parametrize(
    ("numbers", "others", "behind"),
    [
        ([0], "", 4),
        ([2], "", 2),
        ([4], "", 0),
        ([1, 3], ", as is 1 other", 2),
        ([0, 1, 2], ", as are 2 others", 2),
        ([2, 3, 4], ", as are 2 others", 0),
    ],
)
def test_a_missing_segment_is_named_with_the_remedy(
    tmp_path: Path, numbers: list[int], others: str, behind: int
) -> None:
    stream = removed(tmp_path, *numbers)
    said = (
        f"{tmp_path}/{numbers[0]:012d}.avro: missing{others}, and {behind} of the segments behind it are there; restore"
        f" what is missing, or, if it is lost, run uldp give-up {tmp_path}: jobs then read what is there, and account"
        " the rest as missing"
    )
    for reading in (stream.refuse_holes, lambda: message_files(tmp_path), lambda: read(stream)):
        with pytest.raises(StreamError) as refused:
            reading()
        assert str(refused.value) == said
    assert sum(map(len, (each.segments for each in stream.give_up_missing()))) == len(numbers)
    assert stream.missing() == []
    assert len(message_files(tmp_path)) == SEGMENTS - len(numbers)


def test_a_segment_that_goes_while_others_come_is_noticed_before_none_is_yielded(tmp_path: Path) -> None:
    stream = removed(tmp_path, closed=False)
    follow = stream.follow(0)
    assert [next(follow) for _ in range(3)] == stream.segments()[:3]
    stream.segments()[3].unlink()
    with pytest.raises(StreamError, match=r"^.*3\.avro: missing, and 1 of the segments behind it are there"):
        next(follow)


def test_an_open_stream_may_lack_nothing_but_what_is_to_come(tmp_path: Path) -> None:
    stream = removed(tmp_path, SEGMENTS - 1, closed=False)
    assert stream.missing() == []
    assert stream.missing(end=SEGMENTS) == [range(SEGMENTS - 1, SEGMENTS)]


def test_what_a_job_does_not_need_may_be_missing(tmp_path: Path) -> None:
    stream = removed(tmp_path, 0, 1)
    assert stream.missing(since=2) == []
    assert [path.stem[-1] for path in stream.follow(0, "000000000002.avro") if path] == ["2", "3", "4"]


def test_a_large_number_is_a_hole_of_a_few_bytes(tmp_path: Path) -> None:
    stream = removed(tmp_path, closed=False)
    (tmp_path / f"{10**12 - 1}.avro").touch()
    assert stream.missing() == [range(SEGMENTS, 10**12 - 1)]


def test_a_writer_goes_on_behind_the_first_that_must_be_there(tmp_path: Path) -> None:
    stream = edited(removed(tmp_path, *range(SEGMENTS), closed=False), first=7)
    assert stream.append([Message(b"", 1)]).name == "000000000007.avro"
    assert stream.missing() == []


@pytest.mark.parametrize(("first", "bound"), [(SEGMENTS + 1, SEGMENTS), (-1, SEGMENTS)])
def test_a_first_segment_that_cannot_be_is_refused(tmp_path: Path, first: int, bound: int) -> None:
    said = rf'stream\.json: "first" is {first}, not a number from 0 to {bound}; restore the original file$'
    with pytest.raises(StreamError, match=said):
        edited(removed(tmp_path), first=first)


@pytest.mark.parametrize("first", ["3", None, 1.5, [1]])
def test_a_first_segment_that_is_no_number_is_refused(tmp_path: Path, first: object) -> None:
    with pytest.raises(StreamError, match=r"stream\.json: not the settings of a local stream"):
        edited(removed(tmp_path), first=first)


def test_a_mark_of_the_end_that_is_damaged_is_named(tmp_path: Path) -> None:
    stream = removed(tmp_path)
    (tmp_path / "closed").write_text("five")
    with pytest.raises(StreamError, match=r"closed: not the number of segments; empty the file"):
        stream.missing()
    (tmp_path / "closed").write_text("")
    assert read(stream) == list(range(SEGMENTS))


def test_a_link_to_nothing_is_read_and_fails(tmp_path: Path) -> None:
    stream = removed(tmp_path, 2)
    (tmp_path / "000000000002.avro").symlink_to("nowhere")
    assert read(stream) == list(range(SEGMENTS))
