"""Group commit: posts that come while others are being written are written together, in one segment and one sync."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from uldp.pipelines.intake.judging import Judge, Late, Refusal, Verdict
from uldp.schemas.errors import EndpointError
from uldp.schemas.records import Message
from uldp.transforms.io.endpoints import Writer

#: Bytes of posts that are written together; a segment takes as much memory in a job.
_AT_ONCE = 4 << 20
#: Seconds in which a post is written, or its sender has to come again; a broker that is away takes nothing for minutes.
WRITE_SECONDS = 20.0
#: What a post takes besides its body.
_OVERHEAD = 1 << 10


class FullError(EndpointError):
    """So much waits to be written that a post has to come again later."""


class NotWrittenError(EndpointError):
    """The stream has not taken a post, or not yet; the sender has to come again."""


class _Post(NamedTuple):
    """A message that waits, and the future that tells its sender what became of it."""

    data: bytes
    attributes: Mapping[str, str]
    done: "asyncio.Future[Verdict | None]"


class Commits:
    """Judges and writes posts in one thread, many at a time. To be used in one event loop.

    A post is answered when the stream has it: a local stream's segment is synced, or the broker has acknowledged it.
    """

    def __init__(
        self,
        judge: Judge,  # refuses what can never be counted
        stream: Writer,  # where all other messages go
        most_waiting: int,  # bytes of posts that may wait or be under way
        # Called with each failure to write that is not the same as the last one, and once if writing takes too long.
        failed: Callable[[Exception], None] = lambda error: None,
        # Raises EndpointError if the disk of the stream has too little free space.
        check_space: Callable[[], None] = lambda: None,
        # Returns the publish time of what is written now; the stream's clock, if none is given.
        clock: Callable[[], int] | None = None,
        # Called with the messages that are refused for good.
        refused: Callable[[Sequence[tuple[Message, Refusal]]], None] = lambda refused: None,
    ) -> None:
        self._judge, self._stream, self._failed, self._check_space = judge, stream, failed, check_space
        self._clock, self._refused = clock or stream.now, refused
        self._most_waiting, self._bytes = most_waiting, 0
        self._waiting: list[_Post] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="commit")
        self._running: asyncio.Task[None] | None = None
        self.late = 0  # the number of reports that were written and late
        self._under_way = 0  # posts that the thread has not written yet
        self._told = ""  # why the posts under way are not written

    async def put(self, data: bytes, attributes: Mapping[str, str]) -> Verdict | None:
        """Write a message; return when it is durable, with why it is not, or how many of its reports are late.

        FullError if too much waits; NotWrittenError if the stream did not take it, or has not yet: a copy may come.
        """
        post = _Post(data, attributes, asyncio.get_running_loop().create_future())
        if self._bytes + _size(post) > self._most_waiting:
            raise FullError
        self._bytes += _size(post)
        self._waiting.append(post)
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        # The sender may go away; what it sent is written nevertheless, and takes its room until then.
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                return await asyncio.shield(post.done)
        except TimeoutError:
            self._tell(TimeoutError(f"took nothing for {WRITE_SECONDS:g} seconds; check that it can be reached"))
            raise NotWrittenError from None

    def _tell(self, error: Exception) -> None:
        """Tell once of a failure that goes on."""
        if self._told != str(error):
            self._told = str(error)
            self._failed(error)

    def waiting_bytes(self) -> int:
        """Return the bytes of the posts that wait or are under way."""
        return self._bytes

    def close(self, seconds: float) -> int:
        """Wait for posts, of a broker so many seconds; return how many were not written, and not answered as such."""
        self._stream.give_up(seconds)
        self._thread.shutdown()
        return len(self._waiting) + self._under_way

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            posts = self._take()
            self._under_way = len(posts)
            try:
                found = await loop.run_in_executor(self._thread, self._write, posts)
            except Exception as error:
                self._tell(error)
                for post in posts:
                    _settle(post, error=NotWrittenError())
            else:
                self._told = ""
                for row, post in enumerate(posts):
                    _settle(post, found.get(row))
            self._bytes -= sum(map(_size, posts))
            self._under_way = 0
        self._running = None

    def _take(self) -> list[_Post]:
        """Take the first posts: so many that their bytes fill a segment."""
        room = _AT_ONCE
        for number, post in enumerate(self._waiting):
            room -= _size(post)
            if room <= 0:
                taken, self._waiting = self._waiting[: number + 1], self._waiting[number + 1 :]
                return taken
        taken, self._waiting = self._waiting, []
        return taken

    def _write(self, posts: Sequence[_Post]) -> dict[int, Verdict]:
        """Judge posts, and append those that can be accounted; runs in the thread."""
        published = self._clock()
        messages = [Message(post.data, published, post.attributes) for post in posts]
        found = self._judge.judge(messages)
        if refused := [(messages[row], each) for row, each in found.items() if isinstance(each, Refusal)]:
            self._refused(refused)
        if kept := [message for row, message in enumerate(messages) if isinstance(found.get(row), Late | None)]:
            self._check_space()
            self._stream.append(kept)
            self._stream.flush()
        self.late += sum(each.late for each in found.values() if isinstance(each, Late))
        self._under_way = 0
        return found


def _size(post: _Post) -> int:
    """Return the bytes that a post takes while it waits."""
    return len(post.data) + _OVERHEAD


def _settle(post: _Post, found: Verdict | None = None, error: Exception | None = None) -> None:
    """Tell the sender of a post, unless it has gone."""
    if post.done.done():
        return
    if error is None:
        post.done.set_result(found)
    else:
        post.done.set_exception(error)
        post.done.exception()  # if its sender has gone, nobody asks
