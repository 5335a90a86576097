"""What a queue has lent: when it is acknowledged, extended and given up."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.pubsub import Clock, Queue
from uldp.transforms.coders import StateLayoutError
from uldp.transforms.io.pubsub import checkpoint as module
from uldp.transforms.io.pubsub.checkpoint import (
    EXTENSION_SECONDS,
    GIVE_UP_SECONDS,
    PER_REQUEST,
    SHORTEST_SECONDS,
    UNKNOWN,
    AckMark,
    AckMarkCoder,
    Leases,
)


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def leases(queue: Queue, clock: Clock) -> Leases:
    return Leases(queue, clock=clock)


def test_a_commit_is_believed_with_the_next_mark(leases: Leases, queue: Queue) -> None:
    leases.take(["a"], [0])
    first = leases.make_mark()
    leases.take(["b"], [0])
    first.finalize_checkpoint()
    first.finalize_checkpoint()
    assert queue.acknowledged == []
    leases.make_mark().finalize_checkpoint()
    assert queue.acknowledged == ["a"]
    leases.make_mark().finalize_checkpoint()
    assert (queue.acknowledged, len(leases)) == (["a", "b"], 0)


@given(st.lists(st.sampled_from(["take", "mark", "barrier", "notice", "crash"]), max_size=60))
def test_what_is_acknowledged_is_in_the_checkpoint_that_a_job_falls_back_to(events: list[str]) -> None:
    """Flink's rules: a notice of a checkpoint commits all marks there are, also those behind its barrier."""
    queue = Queue()
    leases = Leases(queue)
    mark = leases.make_mark()
    covered: set[str] = set()  # by the marks so far
    uncovered: set[str] = set()
    uncommitted: list[AckMark] = []
    durable, restored = set[str](), mark  # of the last complete checkpoint
    pending: tuple[set[str], AckMark] | None = None
    for index, event in enumerate(events):
        if event == "take":
            uncovered.add(str(index))
            leases.take([str(index)], [0])
        elif event == "mark":
            mark = leases.make_mark()
            uncommitted.append(mark)
            covered, uncovered = covered | uncovered, set()
        elif event == "barrier" and pending is None:
            pending = (covered, mark)
        elif event == "notice" and pending is not None:
            (durable, restored), pending = pending, None
            for each in uncommitted:
                each.finalize_checkpoint()
            uncommitted = []
        elif event == "crash":
            covered, uncovered, uncommitted, pending, mark = durable, set(), [], None, restored
            leases.roll_back(restored.number)
        assert set(queue.acknowledged) <= durable


def test_leases_are_extended_before_they_run_out(leases: Leases, queue: Queue, clock: Clock) -> None:
    leases.take(["a"], [0])
    lent_until = clock.now + SHORTEST_SECONDS
    given_up = clock.now + GIVE_UP_SECONDS
    while clock.now < given_up:
        clock.now += 1
        before = len(queue.extended)
        leases.tend()
        if len(queue.extended) > before:
            assert queue.extended[-1] == (["a"], EXTENSION_SECONDS)
            lent_until = clock.now + EXTENSION_SECONDS
        assert clock.now < lent_until - 1
    assert len(queue.extended) <= 2 * GIVE_UP_SECONDS / EXTENSION_SECONDS + 1


def test_what_nobody_commits_is_given_up(
    leases: Leases, queue: Queue, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    leases.take(["a", "b"], [0])
    mark = leases.make_mark()
    clock.now += GIVE_UP_SECONDS + 1
    leases.tend()
    assert (len(leases), queue.extended) == (0, [])
    assert "gave up 2 messages" in caplog.text
    for late in (mark, leases.make_mark()):
        late.finalize_checkpoint()
    assert queue.acknowledged == []


def test_while_the_queue_is_away_nothing_is_forgotten(leases: Leases, queue: Queue, clock: Clock) -> None:
    leases.take(["a"], [0])
    leases.make_mark().finalize_checkpoint()
    leases.take(["b"], [0])
    clock.now += SHORTEST_SECONDS
    queue.away = True
    leases.make_mark().finalize_checkpoint()
    leases.tend()
    assert (queue.acknowledged, queue.extended) == ([], [])
    queue.away = False
    leases.tend()
    assert (queue.acknowledged, queue.extended) == (["a"], [(["b"], EXTENSION_SECONDS)])


def test_requests_are_of_bounded_size(leases: Leases, queue: Queue, clock: Clock) -> None:
    ids = [str(i) for i in range(5 * PER_REQUEST // 2)]
    for start in range(0, len(ids), 500):
        leases.take(ids[start : start + 500], [0])
    clock.now += SHORTEST_SECONDS
    leases.tend()
    for _ in range(2):
        leases.make_mark().finalize_checkpoint()
    assert queue.acknowledged == ids
    assert [len(part) for part, _ in queue.extended] == [1000, 1000, 500]


def test_a_thread_tends_until_all_is_acknowledged(
    leases: Leases, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TEND_SECONDS", 0.001)
    leases.take(["a"], [0])
    leases.keep_tending()
    leases.keep_tending()
    (tending,) = [thread for thread in threading.enumerate() if thread.name == "leases"]
    queue.away = True
    for _ in range(2):
        leases.make_mark().finalize_checkpoint()
    looks = queue.requests + 3
    while queue.requests < looks and tending.is_alive():
        tending.join(0.001)
    assert (queue.acknowledged, tending.is_alive()) == ([], True)
    queue.away = False
    tending.join(60)
    assert (queue.acknowledged, tending.is_alive()) == (["a"], False)


def test_marks_find_their_leases_as_long_as_somebody_has_them(queue: Queue) -> None:
    leases = Leases(queue)
    mark = leases.make_mark()
    assert Leases.of(mark) is leases
    del leases
    assert Leases.of(mark) is None
    mark.finalize_checkpoint()


@given(st.binary(min_size=16, max_size=16), st.integers(0, 2**64 - 1), st.integers(UNKNOWN, -UNKNOWN))
def test_a_mark_is_read_back(chain: bytes, number: int, watermark: int) -> None:
    mark, coder = AckMark(chain, number, watermark), AckMarkCoder()
    assert coder.decode(coder.encode(mark)) == mark
    assert len(coder.encode(mark)) == 33


@pytest.mark.parametrize("encoded", [b"", b"\1" + bytes(32), b"\1" + bytes(24), b"\2" + bytes(31), b"\2" + bytes(33)])
def test_other_bytes_are_no_mark(encoded: bytes) -> None:
    with pytest.raises(StateLayoutError, match="not a mark of layout 2"):
        AckMarkCoder().decode(encoded)
