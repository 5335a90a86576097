"""Writers that hold transactions open for longer than a window: none of the reports is late once it can be read."""

import itertools
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests import build
from tests.cluster import following
from tests.cluster.daemons import Daemon, wait_until
from tests.cluster.devices import write_spec
from tests.cluster.following import Results, run_uldp, uldp
from tests.cluster.kafka import KafkaBroker
from tests.cluster.prism import on_prism
from uldp.schemas.pane import Accounting, PaneKind
from uldp.transforms.io.kafka.topic import KafkaTopic

#: Two windows and the delay pass while a transaction is open. A report behind the watermark is late at once.
SPEC = build.spec(
    collection="transactions",
    domain={"size": 4},
    mechanism={"name": "identity"},
    window={"size": "3s", "early_every": "1s", "allowed_lateness": "0s"},
)
TRANSACTION_SECONDS = 7.0
NUMBERS = itertools.count()


@dataclass
class Writer:
    """Sends reports, each with the present as its time; in transactions, if it has an id for them."""

    topic: KafkaTopic
    partition: int
    transactional: str | None = None
    sent: int = 0
    producer: Producer = field(init=False)

    def __post_init__(self) -> None:
        settings = {"bootstrap.servers": self.topic.servers, "log_level": 2}
        if self.transactional is None:
            self.producer = Producer(settings)
        else:
            self.producer = Producer({**settings, "transactional.id": f"{self.topic.name}-{self.transactional}"})
            self.producer.init_transactions(30)

    def send(self) -> int:
        """Send a report, and wait until the broker has it; returns its time in ms."""
        now = time.time_ns() // 1_000_000
        body = build.report(next(NUMBERS), 0, now, SPEC.key).encode()
        self.producer.produce(self.topic.name, body, partition=self.partition, timestamp=now)
        assert self.producer.flush(30) == 0
        self.sent += 1
        return now


def send_for(seconds: float, *writers: Writer) -> None:
    """Send by each of these writers, ten times a second: what is open at the time is open for so long."""
    over = time.monotonic() + seconds

    def sent() -> bool:
        for writer in writers:
            writer.send()
        return time.monotonic() > over

    wait_until(sent, "enough was sent", 10 * seconds)


@contextmanager
def following_on_prism(source: KafkaTopic, spec: Path, out: Path) -> Iterator[None]:
    options = ["--spec", spec, "--from", source, "--to", out, "--watermark-delay", "1s", *on_prism()]
    with Daemon(uldp("stream", *options), out.with_suffix(".log"), starts_others=True):
        yield


@pytest.mark.parametrize("runner", ["prism", pytest.param("flink", marks=pytest.mark.nightly)])
def test_reports_of_transactions_and_beside_them_are_on_time(
    broker: KafkaBroker, request: pytest.FixtureRequest, tmp_path: Path, runner: str
) -> None:
    topic, results, spec = (
        broker.create(runner, 2, retention_ms="-1"),
        Results(tmp_path / "out"),
        write_spec(SPEC, tmp_path),
    )
    sink, hung, plain = Writer(topic, 0, "sink"), Writer(topic, 1, "hung"), Writer(topic, 1)
    job: AbstractContextManager[object] = following_on_prism(topic, spec, results.folder)
    if runner == "flink":
        job = following.following(request.getfixturevalue("flink"), str(topic), spec, results.folder)
    with job:
        plain.send()
        wait_until(results.panes, "a pane", 120)
        hung.producer.begin_transaction()
        began = hung.send()
        for _ in range(2):
            sink.producer.begin_transaction()
            send_for(TRANSACTION_SECONDS, sink, plain)
            sink.producer.commit_transaction(30)
        closed = [pane.window_end for pane in results.panes() if pane.pane.kind is not PaneKind.EARLY]
        # Prism may pass on the watermark of one reader though another one's is behind, as decision 8 says.
        assert runner == "prism" or max(closed, default=0) <= began
        hung.producer.abort_transaction(30)
        sent = sink.sent + plain.sent
        results.wait_for(Accounting(sent, sent))
    assert results.total() == Accounting(sent, sent)
    every = f"{sent:,} messages, {sent:,} reports"
    assert run_uldp("audit", topic, results.folder) == f"{topic}: {every}: all accounted\n"


def test_a_backfill_says_what_it_cannot_read_yet(broker: KafkaBroker, tmp_path: Path) -> None:
    topic, spec, out = broker.create("open", 2), write_spec(SPEC, tmp_path), tmp_path / "out"
    hung, plain = Writer(topic, 1, "hung"), Writer(topic, 1)
    plain.send()
    hung.producer.begin_transaction()
    hung.send()
    plain.send()
    job = uldp("backfill", "--spec", spec, "--from", topic, "--to", out)
    done = subprocess.run(job, capture_output=True, text=True, check=True)
    what = (
        f"{topic}: partition 1 has 2 messages from offset 1 on that cannot be read yet, because a transaction is open"
    )
    assert "1 received = 1 counted" in done.stdout
    assert what in done.stderr
    said = run_uldp("audit", topic, out)
    assert what in said
    assert said.endswith(f"{topic}: 1 message, 1 report: all accounted so far\n")
    hung.producer.abort_transaction(30)
