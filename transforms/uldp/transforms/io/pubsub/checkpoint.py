"""Messages that a queue has leased to a reader: the reader acknowledges them, or the queue delivers them again."""

import contextlib
import logging
import secrets
import struct
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from uldp.schemas.errors import EndpointError
from uldp.schemas.records import Message
from uldp.transforms.coders import DeterministicCoder, StateLayoutError
from uldp.transforms.internals import MIN_TIMESTAMP, CheckpointMark

LOGGER = logging.getLogger(__name__)

#: The shortest ack deadline that a queue gives a message before any extension: the shortest that Pub/Sub has.
SHORTEST_SECONDS = 10
#: Seconds from an extension to the new ack deadline: a worker's death delays its messages by this long.
EXTENSION_SECONDS = 60
#: Seconds after which a reader gives up messages that are still not acknowledged. The queue delivers them again.
GIVE_UP_SECONDS = 600.0
#: Seconds between checks for deadlines to extend and messages to acknowledge.
TEND_SECONDS = 1.0
#: The watermark, in milliseconds, of a reader that does not know one.
UNKNOWN = MIN_TIMESTAMP.micros // 1000
#: Messages of one request: an ack id may have 200 bytes, and a request 512 KiB.
PER_REQUEST = 1000


class Unavailable(EndpointError):  # noqa: N818 (a state, not a mistake)
    """The queue does not answer now. A retry loses nothing."""


class Queue(Protocol):
    """Leases messages to a reader. All methods raise ``Unavailable``."""

    def pull(self) -> tuple[list[str], list[Message]]:
        """Return ack ids and messages; none if the queue answers that it has none now."""

    def acknowledge(self, ack_ids: Sequence[str]) -> None:
        """Acknowledge messages, so that the queue does not deliver them again."""

    def extend(self, ack_ids: Sequence[str], seconds: int) -> None:
        """Set the ack deadline of messages to ``seconds`` from now; zero gives them back to the queue."""


def acknowledge(queue: Queue, due: list[str]) -> None:
    """Acknowledge messages, and remove them from ``due``; the rest stays there if the queue does not answer."""
    with contextlib.suppress(Unavailable):
        while due:
            queue.acknowledge(due[:PER_REQUEST])
            del due[:PER_REQUEST]


@dataclass(eq=False)
class _Loan:
    """The messages that one request took."""

    ack_ids: Sequence[str]
    oldest: int  # the earliest publish time of these messages, in milliseconds
    taken: float
    extend_at: float
    mark: int | None = None  # the mark that covers them, or None before the reader makes one
    committed_at: int | None = None  # the newest mark at the time when ``mark`` was committed, or None before that time


class Leases:
    """The messages that a reader has taken and not yet acknowledged, with the checkpoint marks that cover them.

    A mark is a number. *A commit is believed one checkpoint later*: the commit of a mark acknowledges the messages that
    were committed before the reader made that mark, and not the messages that the mark covers. The reason is Flink. It
    announces a complete checkpoint by its number, but Beam's operator ignores the number. It commits all bundles that
    are done by then, including bundles that came after the checkpoint's barrier. If the job falls back to that
    checkpoint, its state does not have these bundles, and their messages must come again. A mark that the reader makes
    after the commit belongs to a later checkpoint, and that checkpoint holds everything that was committed before.
    (This breaks only if a barrier overtakes the notice of the checkpoint before it.) A runner that commits each bundle
    at its end loses nothing by this rule, except that the last mark's messages come again after the reader is gone.

    Marks are committed in order, so the next commit makes up for a lost one.

    Flink creates a reader for each bundle, several in a second, and closes it minutes later. Each reader hands its
    leases to the next, and the connection with them, so a process has one connection for each chain.

    Safe for several threads: one commits, the reader works in another, and a third extends deadlines.
    """

    #: By chain. The references are weak, because each reader or thread that needs leases holds them itself.
    _OPEN: ClassVar[weakref.WeakValueDictionary[bytes, "Leases"]] = weakref.WeakValueDictionary()

    def __init__(
        self, queue: Queue, mark: "AckMark | None" = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.queue = queue  # the queue that leases the messages; safe for several threads too
        #: The owner of the marks: a reader, and the readers that were rebuilt from its marks.
        self.chain = secrets.token_bytes(16) if mark is None else mark.chain
        #: The latest publish time of all messages taken so far, in milliseconds, or None before the first.
        self.newest: int | None = None
        self.logged = 0.0  # when the reader last logged that it waits, in seconds since 1970
        self._clock = clock
        self._last_mark = 0 if mark is None else mark.number
        self._loans: list[_Loan] = []
        self._due: list[str] = []
        self._lock = threading.Lock()
        self._tending = False
        self._OPEN[self.chain] = self

    @classmethod
    def of(cls, mark: "AckMark") -> "Leases | None":
        """Find the leases of a mark's chain, if this process has them."""
        return cls._OPEN.get(mark.chain)

    def __len__(self) -> int:
        with self._lock:
            return sum(len(loan.ack_ids) for loan in self._loans)

    def oldest(self) -> int | None:
        """Return the earliest publish time of unacknowledged messages, in milliseconds, or None if there are none."""
        with self._lock:
            return min((loan.oldest for loan in self._loans), default=None)

    def take(self, ack_ids: Sequence[str], published: Sequence[int]) -> None:
        """Record the messages that a request took just now, with their publish times in milliseconds."""
        now = self._clock()
        oldest, newest = min(published), max(published)
        with self._lock:
            self.newest = newest if self.newest is None else max(self.newest, newest)
            self._loans.append(_Loan(ack_ids, oldest, now, now + SHORTEST_SECONDS / 2))

    def make_mark(self, watermark: int = UNKNOWN) -> "AckMark":
        """Make a mark that covers the messages taken since the last mark, and holds the reader's watermark."""
        with self._lock:
            self._last_mark += 1
            for loan in self._loans:
                if loan.mark is None:
                    loan.mark = self._last_mark
            return AckMark(self.chain, self._last_mark, watermark)

    def commit(self, number: int) -> None:
        """Acknowledge the messages committed before this mark was made, and record that its own are committed."""
        with self._lock:
            done = self._remove(lambda loan: loan.committed_at is not None and loan.committed_at < number)
            self._due += _ack_ids(done)
            for loan in self._loans:
                if loan.mark is not None and loan.mark <= number and loan.committed_at is None:
                    loan.committed_at = self._last_mark
        self._acknowledge()

    def roll_back(self, number: int) -> None:
        """Give back the messages taken after a mark, because a reader that continues there does not have them."""
        with self._lock:
            lost = self._remove(lambda loan: loan.mark is None or loan.mark > number)
        with contextlib.suppress(Unavailable):  # they come again anyway, later
            self._extend(lost, 0)

    def tend(self) -> None:
        """Extend deadlines that are running out, give up old messages, and retry acknowledgements that failed."""
        now = self._clock()
        with self._lock:
            given_up = self._remove(lambda loan: now - loan.taken > GIVE_UP_SECONDS)
            running_out = [loan for loan in self._loans if loan.extend_at <= now]
        if given_up:
            LOGGER.warning(
                "gave up %s messages that no checkpoint covered for %.0f s; Pub/Sub delivers them again. Does the "
                "runner take checkpoints, and more often than that?",
                f"{len(_ack_ids(given_up)):,}",
                GIVE_UP_SECONDS,
            )
        self._acknowledge()
        with contextlib.suppress(Unavailable):  # extend_at has passed, so the next check tries again
            self._extend(running_out, EXTENSION_SECONDS)
            for loan in running_out:
                loan.extend_at = now + EXTENSION_SECONDS / 2

    def keep_tending(self) -> None:
        """Call ``tend`` in the background until all messages are acknowledged or given up."""
        with self._lock:
            if self._tending or not self._loans:
                return
            self._tending = True
        threading.Thread(target=self._tend_all, name="leases", daemon=True).start()

    def _tend_all(self) -> None:
        pause = threading.Event()
        while True:
            pause.wait(TEND_SECONDS)
            try:
                self.tend()
            except Exception:  # the reader gets the queue's refusal too, and fails with it
                LOGGER.warning("could not extend the deadlines of messages, or acknowledge them", exc_info=True)
            with self._lock:
                if not self._loans and not self._due:
                    self._tending = False
                    return

    def _remove(self, leaves: Callable[[_Loan], bool]) -> list[_Loan]:
        """Remove and return the loans for which ``leaves`` is true; the caller holds the lock."""
        removed = [loan for loan in self._loans if leaves(loan)]
        if removed:
            self._loans = [loan for loan in self._loans if not leaves(loan)]
        return removed

    def _acknowledge(self) -> None:
        with self._lock:
            due, self._due = self._due, []
        try:
            acknowledge(self.queue, due)
        finally:
            with self._lock:
                self._due += due

    def _extend(self, loans: Sequence[_Loan], seconds: int) -> None:
        ack_ids = _ack_ids(loans)
        for start in range(0, len(ack_ids), PER_REQUEST):
            self.queue.extend(ack_ids[start : start + PER_REQUEST], seconds)


def _ack_ids(loans: Sequence[_Loan]) -> list[str]:
    return [ack_id for loan in loans for ack_id in loan.ack_ids]


@dataclass(frozen=True, slots=True)
class AckMark(CheckpointMark):
    """A checkpoint mark: it covers the messages that a reader took before the mark was made.

    It does not hold their ack ids, which have 200 bytes each and would be written several times for each bundle. Only
    the process that took the messages can use the ack ids: a reader in another process cannot know whether the messages
    were acknowledged, so there they come again.
    """

    chain: bytes  # the owner of the mark; see ``Leases``
    number: int  # the number of the mark in its chain
    #: The watermark that the reader had announced, in milliseconds. The next reader announces none before.
    watermark: int = UNKNOWN

    def finalize_checkpoint(self) -> None:
        """Commit the mark, if this process has its leases; see ``Leases``. Idempotent."""
        leases = Leases.of(self)
        if leases is not None:
            leases.commit(self.number)


class AckMarkCoder(DeterministicCoder):
    """Encodes a version, the chain, the number and the watermark."""

    _LAYOUT = struct.Struct("<B16sQq")
    _VERSION = 2

    def encode(self, value: AckMark) -> bytes:
        return self._LAYOUT.pack(self._VERSION, value.chain, value.number, value.watermark)

    def decode(self, encoded: bytes) -> AckMark:
        """Read the mark back; StateLayoutError if another version of this software wrote the bytes."""
        if not encoded or encoded[0] != self._VERSION or len(encoded) != self._LAYOUT.size:
            raise StateLayoutError(f"not a mark of layout {self._VERSION}: {encoded[:32]!r}")
        _, chain, number, watermark = self._LAYOUT.unpack(encoded)
        return AckMark(chain, number, watermark)
