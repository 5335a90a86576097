"""Group commit: what is answered is written, and what was not written is said."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from tests import build
from tests.build import START
from uldp.pipelines.intake import commits as module
from uldp.pipelines.intake.commits import Commits, FullError, NotWrittenError
from uldp.pipelines.intake.judging import Judge
from uldp.schemas.records import Message

SPEC = build.spec()


class Stream:
    """A stream that writes when the test lets it."""

    simulated_clock = False

    def __init__(self) -> None:
        self.appended: list[list[Message]] = []
        self.flushed = 0
        self.asked, self.free = threading.Event(), threading.Event()
        self.free.set()
        self.broken = False
        self.given_up: float | None = None
        self.clock = START

    def append(self, messages: Any) -> None:
        self.asked.set()
        self.free.wait()
        if self.broken:
            raise OSError(28, "No space left on device")
        self.appended.append([*messages])

    def flush(self) -> None:
        self.flushed += 1

    def now(self) -> int:
        return self.clock

    def give_up(self, seconds: float) -> None:
        self.given_up = seconds
        self.broken |= not self.free.is_set()
        self.free.set()

    def close(self) -> None:
        raise AssertionError("the stream of others stays open")


def bodies(n: int) -> list[bytes]:
    return [build.report(number, 3).encode() for number in range(n)]


def within(
    run: Callable[[Commits], Coroutine[Any, Any, None]], stream: Stream, *, room: int = 1 << 20, **settings: Any
) -> None:
    """Run a test with commits to a stream."""

    async def whole() -> None:
        commits = Commits(Judge([SPEC]), stream, room, **settings)
        await run(commits)
        commits.close(0)

    asyncio.run(whole())


async def put_all(commits: Commits, data: Sequence[bytes]) -> list[Any]:
    return await asyncio.gather(*(commits.put(each, {}) for each in data), return_exceptions=True)


def test_posts_that_come_during_a_write_are_written_together() -> None:
    stream = Stream()

    async def run(commits: Commits) -> None:
        stream.free.clear()
        first = asyncio.create_task(put_all(commits, bodies(1)))
        await asyncio.sleep(0)
        others = asyncio.create_task(put_all(commits, bodies(50)))
        for _ in range(3):
            await asyncio.sleep(0)
        stream.free.set()
        assert await first == [None]
        assert await others == [None] * 50

    within(run, stream)
    assert [len(messages) for messages in stream.appended] == [1, 50]
    assert stream.flushed == 2


def test_a_write_that_fails_is_said_to_each_sender_and_the_next_one_is_tried() -> None:
    stream, failures = Stream(), list[Exception]()

    async def run(commits: Commits) -> None:
        stream.broken = True
        assert {type(each) for each in await put_all(commits, bodies(3))} == {NotWrittenError}
        stream.broken = False
        assert await put_all(commits, bodies(3)) == [None] * 3

    within(run, stream, failed=failures.append)
    assert sum(map(len, stream.appended)) == 3
    assert {str(each) for each in failures} == {"[Errno 28] No space left on device"}


def test_no_more_waits_than_there_is_room_for() -> None:
    stream = Stream()

    async def run(commits: Commits) -> None:
        stream.free.clear()
        waiting = asyncio.create_task(put_all(commits, bodies(20)))
        await asyncio.sleep(0)
        stream.free.set()
        found = await waiting
        assert found.count(None) == 9  # a kilobyte and a body each
        assert sum(isinstance(each, FullError) for each in found) == 11
        assert await put_all(commits, bodies(1)) == [None]  # there is room again

    within(run, stream, room=10_000)


def test_a_sender_that_goes_away_makes_no_room() -> None:
    stream = Stream()

    async def run(commits: Commits) -> None:
        stream.free.clear()
        for body in bodies(9):
            post = asyncio.create_task(commits.put(body, {}))
            await asyncio.sleep(0)
            post.cancel()
            await asyncio.gather(post, return_exceptions=True)
        with pytest.raises(FullError):
            await commits.put(bodies(1)[0], {})
        stream.free.set()

    within(run, stream, room=10_000)


def test_each_write_has_one_publish_time_by_the_clock_that_is_given() -> None:
    stream = Stream()

    async def run(commits: Commits) -> None:
        await put_all(commits, bodies(2))
        await put_all(commits, bodies(1))

    within(run, stream, clock=iter([START, START + 5]).__next__)
    assert [[each.publish_time for each in part] for part in stream.appended] == [[START, START], [START + 5]]


def test_a_sender_comes_again_when_a_write_takes_long_and_what_it_sent_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "WRITE_SECONDS", 0.01)
    stream, failures = Stream(), list[Exception]()

    async def run(commits: Commits) -> None:
        stream.free.clear()
        assert {type(each) for each in await put_all(commits, bodies(9))} == {NotWrittenError}
        with pytest.raises(FullError):  # they still take their room
            await commits.put(bodies(1)[0], {})
        stream.free.set()
        monkeypatch.setattr(module, "WRITE_SECONDS", 60.0)
        await asyncio.gather(*(each for each in asyncio.all_tasks() if each is not asyncio.current_task()))
        assert await commits.put(bodies(1)[0], {}) is None  # there is room again

    within(run, stream, room=10_000, failed=failures.append)
    assert sum(map(len, stream.appended)) == 10
    assert [str(each) for each in failures] == ["took nothing for 0.01 seconds; check that it can be reached"]


@pytest.mark.parametrize("gone", [0, 1])
def test_what_a_sender_sent_is_written_although_it_has_gone(gone: int) -> None:
    stream = Stream()

    async def run(commits: Commits) -> None:
        stream.free.clear()
        posts = [asyncio.create_task(commits.put(body, {})) for body in bodies(2)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        posts[gone].cancel()
        stream.free.set()
        await asyncio.gather(*posts, return_exceptions=True)
        assert await commits.put(bodies(1)[0], {}) is None

    within(run, stream)
    assert sum(map(len, stream.appended)) == 3


@pytest.mark.parametrize("away", [False, True])
def test_what_was_not_written_at_the_end_is_counted(away: bool) -> None:
    stream = Stream()

    async def begin() -> tuple[Commits, list[asyncio.Task[Any]]]:
        commits = Commits(Judge([SPEC]), stream, 1 << 20)
        assert await put_all(commits, bodies(4)) == [None] * 4
        if away:
            stream.free.clear()
        posts = [asyncio.create_task(commits.put(body, {})) for body in bodies(2)]
        for _ in range(3):
            await asyncio.sleep(0)
        posts += [asyncio.create_task(commits.put(body, {})) for body in bodies(5)]
        if not away:
            await asyncio.gather(*posts)
        return commits, posts

    commits, posts = asyncio.run(begin())  # which cancels all that waits, as the end of the server does
    assert commits.close(10.0) == (7 if away else 0)
    assert stream.given_up == 10.0
    assert [post.cancelled() for post in posts] == [away] * 7
    assert sum(map(len, stream.appended)) == (4 if away else 11)
