"""A subscription that is stored in a local stream, so that a job on one machine follows it and can be killed.

Beam's local runners have no checkpoints with which a message could be acknowledged in time. So what is pulled is
written to a local stream first, and acknowledged when it is on the disk. The job follows that stream, and resumes in
it.

It is *at least once*: if the process dies between the two, or Pub/Sub loses an acknowledgement, messages come again.
The job counts each report once, by its id, and the copies as duplicates.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from uldp.schemas.codec.packed import message_bytes
from uldp.schemas.records import Message
from uldp.schemas.regular_files import sync_folder
from uldp.transforms.io.local.segments import number_of
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import StreamError
from uldp.transforms.io.pubsub.checkpoint import PER_REQUEST, Queue, Unavailable, acknowledge

LOGGER = logging.getLogger(__name__)


class Progress(NamedTuple):
    """How far a job has come in a stream, by the numbers of segments."""

    needed: int = 0  # the first segment that the job reads if it is started again
    counted: int = 0  # the first segment that is not counted yet, so far as the job has said


class Inbox:
    """Moves messages from a queue into a local stream, in a thread of its own.

    Memory holds one segment. The disk holds the segments from the first that the job still needs. While the job is
    behind by ``MOST_BYTES`` of them, nothing is pulled, and the queue keeps the rest.
    """

    #: A segment is written when it holds so many bytes, or after so many seconds. Both are far below the ack deadline.
    BYTES, SECONDS = 4 << 20, 0.5
    #: Seconds between two removals of segments, and before a queue is asked again that did not answer.
    FORGET_SECONDS, RETRY_SECONDS = 10.0, 1.0
    #: Bytes of segments that may wait for the job, but for one more segment.
    MOST_BYTES = 256 << 20
    #: Seconds between two looks at a job that is behind.
    BEHIND_SECONDS = 0.5
    #: Acknowledgements that wait for Pub/Sub to answer.
    MOST_DUE = 10 * PER_REQUEST

    def __init__(self, queue: Queue, stream: LocalStream, progress: Callable[[], Progress] = Progress) -> None:
        self.stream = stream
        self.error: Exception | None = None  # what ended the thread, if anything did
        #: A time, in milliseconds: what was published before has been pulled and is in the stream. None until the queue
        #: has answered for the first time that it has nothing.
        self.settled: int | None = None
        self._queue, self._progress = queue, progress
        # The number and the size of each segment that the job may not have counted.
        self._uncounted = deque((number_of(path.name), path.stat().st_size) for path in stream.segments())
        self._due: list[str] = []
        self._stopping = threading.Event()

    def receive(self) -> list[Message]:
        """Pull for a moment, write what came as one segment, acknowledge and return it; OSError before that."""
        ends, size, settled = time.monotonic() + self.SECONDS, 0, self.settled
        taken: dict[str, Message] = {}
        try:
            while size < self.BYTES and time.monotonic() < ends and not self._stopping.is_set():
                asked = int(time.time() * 1000)
                ack_ids, messages = self._queue.pull()
                if not messages:
                    settled = asked
                    break
                taken.update(zip(ack_ids, messages, strict=True))
                size += sum(map(message_bytes, messages))
        except Unavailable as error:
            LOGGER.warning("%s; trying again", error)
            self._stopping.wait(self.RETRY_SECONDS)
        received = sorted(taken.values(), key=lambda message: message.publish_time)
        if received:
            segment = self.stream.append(received)
            sync_folder(self.stream.path)
            self._uncounted.append((number_of(segment.name), segment.stat().st_size))
        self.settled = settled
        self._acknowledge([*taken])
        return received

    def _acknowledge(self, ack_ids: list[str]) -> None:
        """Acknowledge messages that are on the disk; what Pub/Sub does not take now, it is asked to take later."""
        self._due += ack_ids
        acknowledge(self._queue, self._due)
        del self._due[: -self.MOST_DUE]  # the oldest, which come again at their deadline

    def _is_full(self) -> bool:
        """Return whether the job is so far behind that it must count before more is pulled."""
        counted = self._progress().counted
        while self._uncounted and self._uncounted[0][0] < counted:
            self._uncounted.popleft()
        return sum(size for _, size in self._uncounted) >= self.MOST_BYTES

    def catch_up(self, delay_ms: int) -> None:
        """Receive the backlog before the job begins: until nothing older than the delay comes, or no more may wait."""
        while not self._is_full() and (received := self.receive()):
            if received[0].publish_time >= self.stream.now() - delay_ms:
                break

    @contextmanager
    def receiving(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """Receive in the background until the context ends; ``interrupt`` ends it at an OSError or EndpointError."""
        thread = threading.Thread(target=self._receive_all, args=(interrupt,), name="inbox", daemon=True)
        try:
            thread.start()
            yield
        except KeyboardInterrupt:
            if self.error is None:
                raise
            raise self.error from None
        finally:
            self._stopping.set()
            thread.join()

    def _receive_all(self, interrupt: Callable[[], None]) -> None:
        forgot = time.monotonic()
        try:
            while not self._stopping.is_set():
                if self._is_full():
                    self._acknowledge([])
                    self._stopping.wait(self.BEHIND_SECONDS)
                else:
                    self.receive()
                if time.monotonic() - forgot > self.FORGET_SECONDS:
                    forgot = time.monotonic()
                    self.stream.forget(self._progress().needed)
        except Exception as error:  # whatever it is, a job that goes on would wait for ever
            self.error = error
            interrupt()


def open_inbox(path: Path, *, simulated_clock: bool) -> LocalStream:
    """Open, or begin, a stream that only its owner may read; StreamError if it is another, or its clock is."""
    if not path.exists():
        path.mkdir(parents=True, mode=0o700)
        return LocalStream.create(path, simulated_clock=simulated_clock)
    stream = LocalStream.open(path)
    if stream.simulated_clock != simulated_clock:
        fix = "leave out" if simulated_clock else "add"
        raise StreamError(f"{path}: its messages have the other clock; {fix} --simulated-clock")
    return stream
