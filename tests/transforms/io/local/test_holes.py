"""A stream whose numbers have a gap is named as such, by whoever reads it."""

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.records import Message
from uldp.transforms.io.archive import message_files
from uldp.transforms.io.durable_files import publish
from uldp.transforms.io.local import stream as streams
from uldp.transforms.io.local.segments import name_of
from uldp.transforms.io.local.settings import StreamSettings
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import LAST_PUBLISH_TIME, StreamError, read_messages

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


# What is given up.


def given_up(stream: LocalStream) -> list[tuple[int, int, int, bool]]:
    return [(each.first, each.last, each.messages, each.exact) for each in LocalStream.open(stream.path).given_up]


def appended(path: Path, *sizes: int) -> LocalStream:
    """A closed stream with so many messages in each segment, by writers that take turns."""
    LocalStream.create(path)
    writers = LocalStream.open(path), LocalStream.open(path)
    for number, size in enumerate(sizes):
        writers[number // 2 % 2].append([Message(b"", 10 * number + each) for each in range(size)])
    writers[0].close()
    return LocalStream.open(path)


def lose(stream: LocalStream, *numbers: int) -> None:
    for number in numbers:
        (stream.path / name_of(number)).unlink()


def unnumbered(stream: LocalStream, number: int) -> None:
    """Write a segment anew as an older version did, which does not know how many messages were before."""
    path = stream.path / name_of(number)
    messages = list(read_messages(path))
    with path.open("wb") as file:
        EncodedMessages.of(messages).write(file, {LAST_PUBLISH_TIME: str(messages[-1].publish_time)})


@given(st.lists(st.integers(0, 5), min_size=2, max_size=9), st.data())
@settings(max_examples=50, deadline=None)
def test_all_that_is_lost_before_the_last_segment_is_counted(sizes: list[int], data: st.DataObject) -> None:
    """Whatever is lost at a time, and then further segments next to it."""
    with TemporaryDirectory() as folder:
        stream = appended(Path(folder, "stream"), *sizes)
        left = list(range(len(sizes)))
        for once in (True, False):
            lost = data.draw(st.sets(st.sampled_from(left[:-1]))) if left[1:] else set()
            lose(stream, *lost)
            stream.give_up_missing()
            left = [number for number in left if number not in lost]
            found = LocalStream.open(stream.path)
            assert not once or all(each.exact for each in found.given_up)
            assert sum(each.messages for each in found.given_up) + sum(sizes[each] for each in left) == sum(sizes)
            assert read(found) == sorted([*left, *(each.first for each in found.given_up)])


def test_a_number_is_at_least_one_a_segment_where_no_header_tells_it(tmp_path: Path) -> None:
    stream = appended(tmp_path / "stream", 3, 3, 3, 3, 3, 3)
    unnumbered(stream, 2)
    lose(stream, 1, 3, 5)
    assert not any(each.exact for each in stream.give_up_missing())
    assert given_up(stream) == [(1, 1, 1, False), (3, 3, 1, False), (5, 5, 1, False)]


def test_behind_a_segment_without_a_number_writers_count_again(tmp_path: Path) -> None:
    stream = LocalStream.create(tmp_path / "stream")
    stream.append([Message(b"", 1)])
    unnumbered(stream, 0)
    stream = LocalStream.open(stream.path)
    for size in (2, 3, 4):
        stream.append([Message(b"", 1)] * size)
    lose(stream, 2)
    assert [each.exact for each in stream.give_up_missing()] == [True]
    assert given_up(stream) == [(2, 2, 3, True)]


def test_the_last_of_a_closed_stream_was_written_before_its_end(tmp_path: Path) -> None:
    stream = appended(tmp_path / "stream", 3, 3)
    os.utime(stream.path / "closed", (77, 77))
    lose(stream, 1)
    (each,) = stream.give_up_missing()
    assert (each.after, each.before) == (2, 77_000)


def test_a_neighbour_that_is_damaged_is_named(tmp_path: Path) -> None:
    stream = appended(tmp_path / "stream", 1, 2, 3)
    lose(stream, 1)
    (stream.path / name_of(2)).write_bytes(b"")
    with pytest.raises(StreamError, match=r"2\.avro: not an Avro file of messages .*; replace it .*, or remove it"):
        stream.give_up_missing()
    assert given_up(stream) == []


# What is final.


def with_a_hole_behind(path: Path) -> LocalStream:
    """A stream whose writer has written segment 0, and knows nothing of 1, which is lost, and of 2."""
    one = LocalStream.create(path)
    one.append([Message(b"", 1)])
    other = LocalStream.open(path)
    for _ in range(2):
        other.append([Message(b"", 2)])
    lose(one, 1)
    return one


def test_no_writer_takes_a_number_that_was_given_up(tmp_path: Path) -> None:
    one = with_a_hole_behind(tmp_path / "stream")
    LocalStream.open(one.path).give_up_missing()
    assert one.append([Message(b"", 3)]).name == name_of(3)
    assert LocalStream.open(one.path).append([Message(b"", 4)]).name == name_of(4)
    assert LocalStream.open(one.path).missing() == []


def test_a_number_that_is_given_up_while_a_writer_takes_it_is_written_again(tmp_path: Path) -> None:
    one = with_a_hole_behind(tmp_path / "stream")

    def given_up_before(aside: Path, path: Path) -> None:
        if path.name == name_of(1):
            LocalStream.open(one.path).give_up_missing()
        publish(aside, path)

    with mock.patch.object(streams, "publish", given_up_before):
        assert one.append([Message(b"third", 3)]).name == name_of(3)
    assert [each.data for each in read_messages(one.segments()[-1])] == [b"third"]


def test_a_segment_that_comes_while_it_is_given_up_stays(tmp_path: Path) -> None:
    stream = appended(tmp_path / "stream", 1, 2, 3)
    back = (stream.path / name_of(1)).rename(tmp_path / "back")
    write = StreamSettings.write

    def comes(settings: StreamSettings, folder: Path) -> None:
        if back.exists():
            back.rename(stream.path / name_of(1))
        write(settings, folder)

    with (
        mock.patch.object(StreamSettings, "write", comes),
        pytest.raises(StreamError, match=r"1\.avro: has come at this moment; run the command again"),
    ):
        stream.give_up_missing()
    assert given_up(stream) == []
    assert read(LocalStream.open(stream.path)) == [0, 1, 2]


def test_segments_behind_that_were_there_are_missed(tmp_path: Path) -> None:
    stream = appended(tmp_path / "stream", 1, 2, 3, 4)
    (stream.path / "closed").unlink()
    lose(stream, 1)
    stream.give_up_missing()
    lose(stream, 2, 3)
    assert stream.missing() == [range(2, 4)]
    stream.give_up_missing()
    assert given_up(stream) == [(1, 1, 2, True), (2, 3, 2, False)]
    assert LocalStream.open(stream.path).append([Message(b"", 1)]).name == name_of(4)


# Settings that somebody has edited.

GIVEN_UP = {"first": 1, "last": 1, "messages": 2, "exact": True, "after": 0, "before": 0}
FORM = r'uldp give-up has written it in this form: \[{"first": 3, "last": 3, "messages": 150, "exact": true, '


OTHER_FORMS: list[object] = [3, [3], [[1, 1]], [{}], [GIVEN_UP | {"messages": -1}], [GIVEN_UP | {"more": 1}], None]
NO_FIRST = rf'"first" is {{}}, not a number from 0 to {SEGMENTS}; restore the original file$'
NO_RUNS = rf'"given_up" does not ascend, or does not end before segment {SEGMENTS}; restore .*{FORM}'
NO_FORM = rf'"given_up" holds no segments that were given up; .*{FORM}'


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        *(({"first": first}, NO_FIRST.format(first)) for first in (SEGMENTS + 1, -1)),
        *(({"first": first}, "not the settings of a local stream") for first in ("3", None, 1.5, [1])),
        *(
            ({"given_up": [GIVEN_UP | {"first": first, "last": last} for first, last in runs]}, NO_RUNS)
            for runs in ([(2, 1)], [(1, 2), (2, 3)], [(3, 3), (1, 1)], [(1, SEGMENTS)])
        ),
        *(({"given_up": runs}, NO_FORM) for runs in OTHER_FORMS),
    ],
)
def test_settings_that_cannot_be_are_refused(tmp_path: Path, settings: dict[str, object], said: str) -> None:
    with pytest.raises(StreamError, match=rf"stream\.json: {said}"):
        edited(removed(tmp_path), **settings)


def test_settings_that_are_damaged_while_a_job_reads_are_named(tmp_path: Path) -> None:
    stream = removed(tmp_path)
    follow = stream.follow(0)
    next(follow)
    (tmp_path / "stream.json").write_text("{")
    with pytest.raises(StreamError, match=r"stream\.json: not the settings of a local stream"):
        next(follow)
