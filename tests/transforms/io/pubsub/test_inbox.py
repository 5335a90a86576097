"""What a subscription gives is on the disk before it is acknowledged, and what is not acknowledged comes again."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests import build
from tests.build import START
from uldp.pipelines.jobs.local import backfill, pipeline_options
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.errors import EndpointError
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import StreamError, read_messages
from uldp.transforms.io.pubsub.checkpoint import Unavailable
from uldp.transforms.io.pubsub.inbox import Inbox, Progress, open_inbox

SPEC = build.spec()
SENT = [build.message(build.report(number, number % 5, START + number), START + number) for number in range(40)]


@dataclass
class Subscription:
    """Gives what is not acknowledged again, as if each deadline had passed; a context of its own for each pull.

    Attributes:
        waiting: By ack id, the messages that are not acknowledged.
        lost: How many of the next acknowledgements are lost.
        failure: What the next pull raises.
    """

    waiting: dict[str, Message]
    lost: int = 0
    failure: Exception | None = None
    per_pull: int = 10
    pulls: list[Sequence[str]] = field(default_factory=list)
    empty: threading.Event = field(default_factory=threading.Event)

    def pull(self) -> tuple[list[str], list[Message]]:
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        given = [*self.waiting][: self.per_pull] if not self.pulls or self.pulls[-1] == [] else []
        self.pulls.append(given)
        if not self.waiting:
            self.empty.set()
        return given, [self.waiting[each] for each in given]

    def acknowledge(self, ack_ids: Sequence[str]) -> None:
        if self.lost:
            self.lost -= 1
            raise Unavailable("no answer")
        for each in ack_ids:
            self.waiting.pop(each, None)

    def extend(self, ack_ids: Sequence[str], seconds: int) -> None:
        raise NotImplementedError


@pytest.fixture(autouse=True)
def _interrupts() -> Iterator[None]:
    """Let SIGINT interrupt the tests: a shell lets the programs that it starts in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def stream(tmp_path: Path) -> LocalStream:
    return open_inbox(tmp_path / "inbox", simulated_clock=True)


@pytest.fixture
def subscription() -> Subscription:
    return Subscription({f"ack{number}": message for number, message in enumerate(reversed(SENT))})


def interrupt() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def stored(stream: LocalStream) -> list[bytes]:
    return [message.data for segment in stream.segments() for message in read_messages(segment)]


def accounting(stream: LocalStream, out: Path) -> Accounting:
    backfill([SPEC], stream.path, out, pipeline_options([]))
    (pane,) = ResultsFolder(out, private=out).statistics()
    return pane.accounting


def test_what_is_acknowledged_is_stored_in_order_of_time(stream: LocalStream, subscription: Subscription) -> None:
    received = Inbox(subscription, stream).receive()
    assert received == sorted(received, key=lambda message: message.publish_time)
    assert stored(stream) == [message.data for message in received]
    assert len(subscription.waiting) == len(SENT) - len(received)


def test_what_cannot_be_stored_is_not_acknowledged(
    stream: LocalStream, subscription: Subscription, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(messages: Sequence[Message]) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stream, "append", full)
    with pytest.raises(OSError, match="No space left"):
        Inbox(subscription, stream).receive()
    assert len(subscription.waiting) == len(SENT)


def test_lost_acknowledgements_give_copies_of_which_each_counts_once(
    stream: LocalStream, subscription: Subscription, tmp_path: Path
) -> None:
    inbox = Inbox(subscription, stream)
    subscription.lost = 1
    while subscription.waiting:
        inbox.receive()
    copies = len(stored(stream)) - len(SENT)
    assert copies > 0
    assert accounting(stream, tmp_path / "out") == Accounting(
        received=len(SENT) + copies, counted=len(SENT), duplicate=copies
    )


def test_a_queue_that_does_not_answer_is_asked_again(
    stream: LocalStream, subscription: Subscription, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Inbox, "RETRY_SECONDS", 0.0)
    inbox = Inbox(subscription, stream)
    subscription.failure = Unavailable("no answer")
    assert inbox.receive() == []
    assert len(inbox.receive()) == subscription.per_pull


def test_it_catches_up_before_the_job_begins(subscription: Subscription, tmp_path: Path) -> None:
    stream = open_inbox(tmp_path / "inbox", simulated_clock=False)
    Inbox(subscription, stream).catch_up(0)
    assert not subscription.waiting
    assert sorted(stored(stream)) == sorted(message.data for message in SENT)


def test_nothing_is_pulled_while_too_much_waits(
    stream: LocalStream, subscription: Subscription, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Inbox, "MOST_BYTES", 1)  # so each segment waits for the job to count the one before
    monkeypatch.setattr(Inbox, "BEHIND_SECONDS", 0.0)
    counted, behind = 0, []

    def progress() -> Progress:
        nonlocal counted
        behind.append(stream.end - counted)
        if len(behind) % 5 == 0:  # the job is slow
            counted = stream.end
        return Progress(0, counted)

    with Inbox(subscription, stream, progress).receiving(interrupt):
        assert subscription.empty.wait(60)
    assert {*behind} == {0, 1}
    assert sorted(stored(stream)) == sorted(message.data for message in SENT)


def test_it_has_all_until_the_queue_was_last_empty(
    stream: LocalStream, subscription: Subscription, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Inbox, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(Inbox, "SECONDS", 60.0)  # it asks until the queue is empty, however slow this machine is
    inbox = Inbox(subscription, stream)
    settled, began = list[int | None](), int(time.time() * 1000)
    for failure in (Unavailable("no answer"), None, Unavailable("no answer")):
        subscription.failure = failure
        inbox.receive()
        settled.append(inbox.settled)
    before, there, after = settled
    assert before is None
    assert there is not None
    assert began <= there <= time.time() * 1000
    assert after == there


def test_an_error_ends_the_job_and_says_what_it_was(stream: LocalStream, subscription: Subscription) -> None:
    subscription.failure = EndpointError("no permission")
    with pytest.raises(EndpointError, match="no permission"), Inbox(subscription, stream).receiving(interrupt):
        threading.Event().wait(60)


def test_a_stop_of_the_job_stops_the_receiving(stream: LocalStream, subscription: Subscription) -> None:
    def until_empty() -> None:
        with Inbox(subscription, stream).receiving(interrupt):
            assert subscription.empty.wait(60)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        until_empty()
    assert not [thread for thread in threading.enumerate() if thread.name == "inbox"]
    assert sorted(stored(stream)) == sorted(message.data for message in SENT)


def test_segments_that_no_window_needs_are_removed(stream: LocalStream, subscription: Subscription) -> None:
    inbox = Inbox(subscription, stream)
    while subscription.waiting:
        inbox.receive()
    kept = stream.segments()[2:]
    stream.forget(2)
    assert stream.segments() == kept
    assert LocalStream.open(stream.path).missing() == []
    stream.forget(1)  # a job that is behind removes nothing
    assert LocalStream.open(stream.path).first == 2


#: A receiver that dies between the segment and the acknowledgement.
KILLED = """
import os, signal, sys
from pathlib import Path
from tests.transforms.io.pubsub.test_inbox import SENT, Subscription
from uldp.transforms.io.pubsub.inbox import Inbox, open_inbox

class Fatal(Subscription):
    def acknowledge(self, ack_ids):
        os.kill(os.getpid(), signal.SIGKILL)

fatal = Fatal({str(number): each for number, each in enumerate(SENT)})
Inbox(fatal, open_inbox(Path(sys.argv[1]), simulated_clock=True)).receive()
"""


def test_a_kill_between_disk_and_acknowledgement_costs_copies_alone(subscription: Subscription, tmp_path: Path) -> None:
    path = tmp_path / "inbox"
    killed = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert killed.returncode == -signal.SIGKILL
    inbox = Inbox(subscription, open_inbox(path, simulated_clock=True))
    while subscription.waiting:
        inbox.receive()
    assert accounting(inbox.stream, tmp_path / "out") == Accounting(received=50, counted=40, duplicate=10)


def test_another_clock_is_refused(stream: LocalStream) -> None:
    with pytest.raises(StreamError, match=r"leave out --simulated-clock|add --simulated-clock"):
        open_inbox(stream.path, simulated_clock=False)
