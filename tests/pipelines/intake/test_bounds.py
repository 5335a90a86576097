"""What one sender may take: bytes a minute, and space on the disk; and how a server ends whose broker takes nothing."""

import asyncio
import queue
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import build
from tests.pipelines.intake.posting import Collecting, post
from tests.pipelines.intake.test_collect import now, write_spec
from tests.pipelines.intake.test_commits import Stream
from tests.pipelines.serve.serving import Serving
from uldp.pipelines.intake import edge as module
from uldp.pipelines.intake import server
from uldp.pipelines.intake.app import Intake, application
from uldp.pipelines.intake.commits import Commits, NotWrittenError
from uldp.pipelines.intake.edge import RateLimit
from uldp.pipelines.intake.judging import Judge
from uldp.pipelines.intake.server import DiskSpace, collect
from uldp.pipelines.intake.tokens import Tokens
from uldp.schemas.errors import EndpointError
from uldp.transforms.io.endpoints import Endpoint, Writer
from uldp.transforms.io.local.stream import LocalStream

PHONE, WATCH = "0123456789abcdef", "fedcba9876543210"


def test_each_sender_has_an_allowance_in_each_time() -> None:
    clock = [100.0]
    bounded = RateLimit(10, 60.0, lambda: clock[0])
    assert [bounded.take("a", 6), bounded.take("a", 4), bounded.take("a", 1), bounded.take("b", 10)] == [0, 0, 60, 0]
    clock[0] = 159.5
    assert [bounded.take("a", 1), bounded.take("b", 0)] == [1, 0]
    clock[0] = 160.0
    assert bounded.take("a", 10) == 0


def test_addresses_at_will_take_no_memory_at_will(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_KEYS", 3)
    bounded = RateLimit(10, 60.0, lambda: 0.0)
    assert [bounded.take(f"{number}", 10) > 0 for number in range(5)] == [False, False, False, False, True]
    assert len(bounded._taken) == 4


@pytest.fixture
def stream(tmp_path: Path) -> LocalStream:
    return LocalStream.create(tmp_path / "posted")


def test_a_fast_sender_comes_again_later_and_the_others_are_served(stream: LocalStream) -> None:
    """Senders are tokens, each at each address; a proxy on this machine names the address."""
    body = build.batch([build.report(number, 3, now()) for number in range(20)]).encode()
    commits = Commits(Judge([build.spec()]), stream, 1 << 20)
    bounded = RateLimit(2 * len(body), 60.0, lambda: 1.5)

    def send(token: str, address: str) -> tuple[int, str | None]:
        headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": address}
        status, answered, _ = post(serving.port, body, headers=headers)
        return status, answered.get("retry-after")

    intake = Intake(commits, Tokens({PHONE: "phone", WATCH: "watch"}), ["https://a.example"], bounded)
    with Serving(app=application(intake)) as serving:
        assert [send(PHONE, "192.0.2.1") for _ in range(3)] == [(202, None), (202, None), (429, "60")]
        assert send(PHONE, "192.0.2.2") == send(WATCH, "192.0.2.1") == (202, None)
        assert send(PHONE, "192.0.2.9, 192.0.2.1") == (429, "60")  # the proxy wrote the last one
        assert send(PHONE, "2001:db8::1") == send(PHONE, "2001:db8::2") == (202, None)
        assert send(PHONE, "2001:db8::3") == (429, "60")
        assert send(PHONE, "no:address") == (202, None)
    commits.close(0)


def test_bytes_count_as_they_come_if_none_were_announced(stream: LocalStream) -> None:
    commits = Commits(Judge([build.spec()]), stream, 1 << 20)
    with Serving(app=application(Intake(commits, None, (), RateLimit(1000, 60.0)))) as serving:
        assert post(serving.port, iter([bytes(600)] * 2))[0] == 429
    commits.close(0)


def disk(free: int, total: int = 100 << 30) -> Any:
    return lambda path: shutil._ntuple_diskusage(total, total - free, free)


@pytest.mark.parametrize(
    ("free", "total", "full"),
    [(1 << 30, 100 << 30, False), ((1 << 30) - 1, 100 << 30, True), (60, 1000, False), (49, 1000, True)],
)
def test_a_disk_without_space_is_said(
    free: int, total: int, full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", disk(free, total))
    if not full:
        DiskSpace(tmp_path).check()
        return
    with pytest.raises(EndpointError, match=r"MiB of its disk are free, and the server leaves .* free some space"):
        DiskSpace(tmp_path).check()


def test_nothing_is_written_below_the_floor_and_one_line_says_so(
    stream: LocalStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[Exception] = []

    async def run() -> None:
        commits = Commits(Judge([build.spec()]), stream, 1 << 20, said.append, DiskSpace(stream.path).check)
        monkeypatch.setattr(shutil, "disk_usage", disk(1))
        for number in range(3):
            with pytest.raises(NotWrittenError):
                await commits.put(build.report(number, 3, now()).encode(), {})
        assert (await commits.put(b"no report", {})) is not None  # it needs no space
        monkeypatch.undo()
        assert await commits.put(build.report(9, 3, now()).encode(), {}) is None
        commits.close(0)

    asyncio.run(run())
    assert len(said) == 1
    assert len(stream.segments()) == 1


def test_the_option_is_million_bytes(tmp_path: Path) -> None:
    write_spec(tmp_path / "spec.yaml")
    body = build.batch([build.report(number, 3, now()) for number in range(10_000)]).encode()
    assert 250_000 < len(body) < 1_000_000 // 2
    with Collecting(tmp_path / "spec.yaml", tmp_path / "posted", "--megabytes", "1") as collecting:
        answers = [post(collecting.port, body)[0] for _ in range(5)]
    assert answers[:2] == [202, 202]
    assert answers[-1] == 429


class Away(Endpoint):
    """A broker that takes nothing; a writer to it waits until it gives up."""

    def __init__(self) -> None:
        self.stream = Stream()
        self.stream.free.clear()

    def __str__(self) -> str:
        return "kafka:away/reports"

    @contextmanager
    def writing(self, *, simulated_clock: bool) -> Iterator[Writer]:
        assert not simulated_clock
        yield self.stream


def test_a_server_whose_broker_is_away_ends_and_counts_what_it_did_not_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CLOSE_SECONDS", 0.5)
    away, said, ends = Away(), queue.Queue[str](), queue.Queue[Callable[[], object]]()
    settings: dict[str, Any] = {"host": "127.0.0.1", "port": 0, "origins": (), "megabytes": 60}
    settings |= dict.fromkeys(("tokens", "refused", "registry_ids"))
    serving = threading.Thread(
        target=collect, args=([build.spec()], away), kwargs={**settings, "say": said.put, "until": ends.put}
    )
    serving.start()
    port = int(said.get().partition("/v1/")[0].rpartition(":")[2])

    answers = queue.Queue[int]()
    posting = threading.Thread(target=lambda: answers.put(post(port, build.report(1, 3).encode())[0]))
    posting.start()
    assert away.stream.asked.wait(60)
    ends.get()()
    serving.join(60)
    posting.join(60)
    assert not serving.is_alive()
    assert away.stream.given_up == 0.5
    assert answers.get() == 503
    last = said.get()
    assert last.endswith("answered with 202; 1 post was not written, and its sender has to come again")
