"""The end of the server while its broker takes nothing: it waits a bounded time, and says how many posts were lost."""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests import build
from tests.pipelines.intake.posting import post
from tests.pipelines.intake.test_commits import Stream
from uldp.pipelines.intake import server
from uldp.pipelines.intake.server import collect
from uldp.transforms.io.endpoints import Endpoint, Writer


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
