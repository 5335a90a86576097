"""Processes that agree on a value: in any order of their steps, and however many of them are killed."""

import random
import threading
from collections.abc import Set
from functools import partial
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import pytest

from tests.fakes import memory
from uldp.transforms.io.agreed import Agreed, FolderStore

PROCESSES, VALUES, SEEDS = 3, 3, 200


class Killed(BaseException):
    """The process takes no step any more."""


class Steps:
    """Lets one process take one step at a time, in an order that a seed decides, and kills some of them."""

    def __init__(self, seed: int, kills: int) -> None:
        self._randomness = random.Random(seed)
        self._kills = kills
        self._waiting: dict[int, threading.Event] = {}
        self._running = PROCESSES
        self._lock = threading.Condition()
        self.killed: set[int] = set()

    def step(self, process: int) -> None:
        """Wait until it is the turn of a process."""
        turn = threading.Event()
        with self._lock:
            self._waiting[process] = turn
            self._next()
        assert turn.wait(60)
        if process in self.killed:
            raise Killed

    def end(self, process: int) -> None:
        """Take no more steps."""
        with self._lock:
            self._running -= 1
            self._next()

    def _next(self) -> None:
        if self._waiting and len(self._waiting) == self._running:
            process = self._randomness.choice(sorted(self._waiting))
            if self._kills and len(self.killed) < PROCESSES - 1 and self._randomness.random() < 0.05:
                self._kills -= 1
                self.killed.add(process)
            self._waiting.pop(process).set()


class Memory:
    """Files in memory, each access to which is a step of a process."""

    def __init__(self, files: dict[str, bytes], steps: Steps, process: int) -> None:
        self._files, self._steps, self._process = files, steps, process

    def names(self) -> Set[str]:
        """List the files in two steps, as a disk may: what is written or removed meanwhile is in the list or not."""
        found: set[str] = set()
        for half in range(2):
            self._steps.step(self._process)
            found |= {name for name in self._files if crc32(name.encode()) % 2 == half}
        return found

    def read(self, name: str) -> bytes | None:
        self._steps.step(self._process)
        return self._files.get(name)

    def write(self, name: str, content: bytes) -> None:
        self._steps.step(self._process)
        self._files[name] = content

    def remove(self, name: str) -> None:
        self._steps.step(self._process)
        self._files.pop(name, None)


def has(size: int, value: bytes) -> bool:
    """Whether a value was made from so many."""
    return value.count(b" ") >= size


def longer(name: bytes, before: bytes | None) -> bytes:
    return (before or b"") + name


def further(name: bytes, before: bytes | None) -> bytes:
    assert before is not None, "there has been a value all the time"
    return before + name


def values_of(seed: int, kills: int) -> tuple[list[list[bytes]], set[int]]:
    """Let processes agree several times; return what each has got, and which were killed."""
    first = f"{1:012d}-{0:016x}"
    files: dict[str, bytes] = {f"{first}.ballot": b"", f"{first}.json": b""}
    steps = Steps(seed, kills)
    got: list[list[bytes]] = [[] for _ in range(PROCESSES)]

    def run(process: int) -> None:
        agreed = Agreed(Memory(files, steps, process), wait=lambda seconds: None)
        try:
            for size in range(1, VALUES + 1):
                name = b"%d%d " % (process, size)
                got[process].append(agreed.agree(partial(has, size), partial(further, name)))
        except Killed:
            pass
        finally:
            steps.end(process)

    threads = [threading.Thread(target=run, args=[process]) for process in range(PROCESSES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    return got, steps.killed


@pytest.mark.parametrize("kills", [0, 1, 2])
def test_each_value_is_made_from_the_one_before(kills: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(SEEDS):
        randomness = random.Random(seed)
        monkeypatch.setattr("secrets.token_hex", lambda size, randomness=randomness: randomness.randbytes(size).hex())
        got, killed = values_of(seed, kills)
        for process, values in enumerate(got):
            assert process in killed or len(values) == VALUES
        # All that held for any process is one sequence, of which each value begins as the one before.
        held = sorted({value for values in got for value in values}, key=len)
        assert all(later.startswith(value) for value, later in pairwise(held)), (seed, held)
        assert all(values == sorted(values, key=len) for values in got)


@pytest.mark.parametrize("remote", [False, True])
def test_a_folder_keeps_the_newest_value_alone(remote: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "FILES", {})
    folder = "mem://bucket/out/seals" if remote else str(tmp_path / "made" / "when-needed")
    for number in range(3):
        agreed = Agreed(FolderStore(folder))
        assert agreed.agree(partial(has, number + 1), partial(longer, b"x ")) == b"x " * (number + 1)
    assert Agreed(FolderStore(folder)).agree(lambda value: True, lambda before: b"never") == b"x " * 3
    names = FolderStore(folder).names()
    assert {name.partition(".")[2] for name in names} == {"ballot", "json"}
    assert len(names) == 2
    assert FolderStore(folder).read("gone.json") is None


def test_a_ballot_without_a_value_is_passed_after_a_while(tmp_path: Path) -> None:
    waits: list[float] = []
    (tmp_path / "000000000007-0123456789abcdef.ballot").touch()
    (tmp_path / ".a-file-that-is-being-written.tmp").touch()
    agreed = Agreed(FolderStore(str(tmp_path)), wait=waits.append)
    assert agreed.agree(lambda value: True, lambda before: b"first" if before is None else before) == b"first"
    assert sum(waits) >= Agreed.PATIENCE
    assert not (tmp_path / "000000000007-0123456789abcdef.ballot").exists()


class Late(FolderStore):
    """A store that says that it has not written a value."""

    def write(self, name: str, content: bytes) -> None:
        if name.endswith(".json"):
            raise OSError("no answer")
        super().write(name, content)


def test_a_value_whose_writing_fails_keeps_its_ballot_because_it_may_be_shown_later(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no answer"):
        Agreed(Late(str(tmp_path))).agree(lambda value: True, partial(longer, b"late"))
    (ballot,) = tmp_path.glob("*.ballot")
    got = Agreed(FolderStore(str(tmp_path)), wait=lambda seconds: None).agree(lambda value: True, partial(longer, b"x"))
    ballot.with_suffix(".json").write_bytes(b"late")
    assert Agreed(FolderStore(str(tmp_path))).agree(lambda value: True, partial(longer, b"never")) == got


def test_a_process_that_fails_leaves_no_ballot(tmp_path: Path) -> None:
    def fails(before: bytes | None) -> bytes:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        Agreed(FolderStore(str(tmp_path))).agree(lambda value: True, fails)
    assert not list(tmp_path.iterdir())
