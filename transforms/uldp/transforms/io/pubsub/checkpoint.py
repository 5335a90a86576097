"""Messages that a queue has lent: until they are acknowledged, or else come again."""

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

from apache_beam.io.unbounded_source import CheckpointMark

from uldp.schemas.records import Message
from uldp.transforms.coders import DeterministicCoder, StateLayoutError

LOGGER = logging.getLogger(__name__)

#: For how long a queue lends a message at the least before it is extended: the shortest that Pub/Sub knows.
SHORTEST_SECONDS = 10
#: For how long an extension lends it: so long does a worker's death delay what it had.
EXTENSION_SECONDS = 60
#: Messages that are not committed after so long are given up. They come again.
GIVE_UP_SECONDS = 600.0
#: Seconds between looks at what is due.
TEND_SECONDS = 1.0
#: Messages of one request: an id may have 200 bytes, and a request 512 KiB.
PER_REQUEST = 1000


class Unavailable(Exception):  # noqa: N818 (a state, not a mistake)
    """The queue does not answer now. Nothing is lost by asking again."""


class Queue(Protocol):
    """What lends messages. All raise ``Unavailable``."""

    def pull(self) -> tuple[list[str], list[Message]]:
        """Return ack ids and messages; none if the queue answers that it has none to give now."""

    def acknowledge(self, ack_ids: Sequence[str]) -> None:
        """Say that these need not come again."""

    def extend(self, ack_ids: Sequence[str], seconds: int) -> None:
        """Borrow these for so long from now; zero gives them back."""


@dataclass(eq=False)
class _Loan:
    """What one request took.

    Attributes:
        oldest: The earliest publish time among its messages, in milliseconds.
        mark: The mark that covers it, or None as long as none was made.
        committed_at: The last mark that had been made when this one's was committed, or None before.
    """

    ack_ids: Sequence[str]
    oldest: int
    taken: float
    extend_at: float
    mark: int | None = None
    committed_at: int | None = None


class Leases:
    """What a reader took and did not acknowledge yet, with the checkpoint marks that cover it.

    A mark is a number. *A commit is believed one checkpoint later*: it acknowledges what had been committed before the
    committed mark was made, and not what that mark covers. Flink tells of a complete checkpoint by its number, but
    Beam's operator ignores the number and commits all bundles that are done by then, also those that came behind the
    checkpoint's barrier. If the job falls back to that checkpoint, these are gone from its state, and must come again.
    A mark that was made after such a commit belongs to a later checkpoint, which holds all that was committed before.
    (A barrier would have to overtake the notice of the checkpoint before it to break this.) A runner that commits each
    bundle at its end loses nothing by it, only that the last mark's messages come again after the reader is gone.

    Marks are committed in their order, so that a commit which got lost is made up for by the next.

    Flink makes a reader for each bundle, several in a second, and closes them minutes later. Leases are handed from one
    to the next, and with them the connection, of which a process so has one for each chain.

    Safe for several threads: commits come in one, the reader works in another, and a third extends.

    Attributes:
        queue: What lends; safe for several threads too.
        chain: Who the marks belong to: a reader, and those that were rebuilt from its marks.
        newest: The latest publish time of all that was taken, in milliseconds, or None before.
        logged: When its reader last said that it waits, in seconds since 1970.
    """

    #: By chain. Weak: whoever still has something to do with leases holds them.
    _OPEN: ClassVar[weakref.WeakValueDictionary[bytes, "Leases"]] = weakref.WeakValueDictionary()

    def __init__(
        self, queue: Queue, mark: "AckMark | None" = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.queue = queue
        self.chain = secrets.token_bytes(16) if mark is None else mark.chain
        self.newest: int | None = None
        self.logged = 0.0
        self._clock = clock
        self._last_mark = 0 if mark is None else mark.number
        self._loans: list[_Loan] = []
        self._due: list[str] = []
        self._lock = threading.Lock()
        self._tending = False
        self._OPEN[self.chain] = self

    @classmethod
    def of(cls, mark: "AckMark") -> "Leases | None":
        """Find the leases that a mark speaks of, if this process has them."""
        return cls._OPEN.get(mark.chain)

    def __len__(self) -> int:
        with self._lock:
            return sum(len(loan.ack_ids) for loan in self._loans)

    def oldest(self) -> int | None:
        """Return the earliest publish time of what is not acknowledged, in milliseconds, or None if all is."""
        with self._lock:
            return min((loan.oldest for loan in self._loans), default=None)

    def take(self, ack_ids: Sequence[str], published: Sequence[int]) -> None:
        """Note what a request took just now, and when it was published, in milliseconds."""
        now = self._clock()
        oldest, newest = min(published), max(published)
        with self._lock:
            self.newest = newest if self.newest is None else max(self.newest, newest)
            self._loans.append(_Loan(ack_ids, oldest, now, now + SHORTEST_SECONDS / 2))

    def make_mark(self) -> "AckMark":
        """Cover what was taken since the last mark."""
        with self._lock:
            self._last_mark += 1
            for loan in self._loans:
                if loan.mark is None:
                    loan.mark = self._last_mark
            return AckMark(self.chain, self._last_mark)

    def commit(self, number: int) -> None:
        """Acknowledge what had been committed when this mark was made, and note that what it covers is committed."""
        with self._lock:
            done = self._remove(lambda loan: loan.committed_at is not None and loan.committed_at < number)
            self._due += _ack_ids(done)
            for loan in self._loans:
                if loan.mark is not None and loan.mark <= number and loan.committed_at is None:
                    loan.committed_at = self._last_mark
        self._acknowledge()

    def roll_back(self, number: int) -> None:
        """Give back what was taken after a mark: whoever goes on from there knows nothing of it."""
        with self._lock:
            lost = self._remove(lambda loan: loan.mark is None or loan.mark > number)
        with contextlib.suppress(Unavailable):  # they come again all the same, later
            self._extend(lost, 0)

    def tend(self) -> None:
        """Extend what is running out, give up what nobody commits, and acknowledge what could not be before."""
        now = self._clock()
        with self._lock:
            given_up = self._remove(lambda loan: now - loan.taken > GIVE_UP_SECONDS)
            running_out = [loan for loan in self._loans if loan.extend_at <= now]
        if given_up:
            LOGGER.warning(
                "gave up %s messages that no checkpoint covered for %.0f s; they come again. Does the runner take "
                "checkpoints, and more often than that?",
                f"{len(_ack_ids(given_up)):,}",
                GIVE_UP_SECONDS,
            )
        self._acknowledge()
        with contextlib.suppress(Unavailable):  # extend_at has passed, so the next look tries again
            self._extend(running_out, EXTENSION_SECONDS)
            for loan in running_out:
                loan.extend_at = now + EXTENSION_SECONDS / 2

    def keep_tending(self) -> None:
        """Tend in the background until all is acknowledged or given up."""
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
            except Exception:  # what the queue refuses the reader is told too, and fails with it
                LOGGER.warning("could not extend or acknowledge what was taken", exc_info=True)
            with self._lock:
                if not self._loans and not self._due:
                    self._tending = False
                    return

    def _remove(self, leaves: Callable[[_Loan], bool]) -> list[_Loan]:
        """Take loans out; the lock is held."""
        removed = [loan for loan in self._loans if leaves(loan)]
        if removed:
            self._loans = [loan for loan in self._loans if not leaves(loan)]
        return removed

    def _acknowledge(self) -> None:
        """Acknowledge what is due; what the queue does not take stays due."""
        with self._lock:
            due, self._due = self._due, []
        try:
            while due:
                self.queue.acknowledge(due[:PER_REQUEST])
                del due[:PER_REQUEST]
        except Unavailable:
            pass  # it is due still
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
    """Covers what a reader took until then.

    It does not hold the ack ids, which have 200 bytes each and would be written several times for each bundle. They are
    of use in the process that took the messages alone: whoever goes on elsewhere cannot know what became of them, so
    there they come again.
    """

    chain: bytes
    number: int

    def finalize_checkpoint(self) -> None:
        """Commit the mark, where its leases are; see ``Leases``. Idempotent."""
        leases = Leases.of(self)
        if leases is not None:
            leases.commit(self.number)


class AckMarkCoder(DeterministicCoder):
    """A version, the chain and the number."""

    _LAYOUT = struct.Struct("<B16sQ")
    _VERSION = 1

    def encode(self, value: AckMark) -> bytes:
        """Write 25 bytes."""
        return self._LAYOUT.pack(self._VERSION, value.chain, value.number)

    def decode(self, encoded: bytes) -> AckMark:
        """Read them back.

        Raises:
            StateLayoutError: if another version of this software wrote it.
        """
        if not encoded or encoded[0] != self._VERSION or len(encoded) != self._LAYOUT.size:
            raise StateLayoutError(f"not a mark of layout {self._VERSION}: {encoded[:32]!r}")
        _, chain, number = self._LAYOUT.unpack(encoded)
        return AckMark(chain, number)
