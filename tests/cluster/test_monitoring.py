"""What is watched, for real: a job on Flink, whose metrics Prometheus reads as ``deploy/monitoring`` says."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import apache_beam as beam
import numpy as np
import pytest

from tests.build import MINUTE, spec
from tests.cluster.daemons import wait_until
from tests.cluster.flink import Flink
from tests.cluster.kafka import KafkaBroker, send
from tests.cluster.prometheus import MONITORING, Prometheus, program
from tests.deploy.test_monitoring import ALERTS, OURS, SHOWN, metrics
from uldp.pipelines.jobs.cluster import BrokerJob, cluster_options
from uldp.pipelines.jobs.kept_specs import keep_specs
from uldp.pipelines.jobs.outputs import Claim
from uldp.pipelines.jobs.settings import JobSettings
from uldp.schemas.records import Message, Report
from uldp.transforms.io.kafka.endpoint import KafkaEndpoint
from uldp.transforms.io.kafka.topic import KafkaTopic
from uldp.transforms.metrics import CounterName

PARTITIONS = 4

SPEC = spec(
    collection="watched",
    domain={"size": 4},
    mechanism={"name": "identity"},
    window={"size": "5s", "early_every": "1s", "allowed_lateness": "5s"},
    limits={"max_age": "10m"},
)


@pytest.mark.parametrize("arguments", [("check", "config", "prometheus.yaml"), ("test", "rules", "alerts_test.yaml")])
def test_promtool_agrees(arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [program("promtool"), *arguments], cwd=MONITORING, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


class Sender:
    """Sends reports, and remembers how many."""

    def __init__(self, topic: KafkaTopic) -> None:
        self._topic, self._randomness = topic, np.random.default_rng(9)
        self.sent = 0

    def report(self, ahead_ms: int) -> bytes:
        """Make a report of a device whose clock is so much ahead."""
        return Report(*SPEC.key, self._randomness.bytes(16), time.time_ns() // 1_000_000 + ahead_ms, 1).encode()

    def send(self, *bodies: bytes) -> None:
        now = time.time_ns() // 1_000_000
        send(self._topic, self.sent % PARTITIONS, [Message(body, now) for body in bodies])
        self.sent += len(bodies)


@pytest.fixture
def watched(broker: KafkaBroker, tmp_path: Path) -> Iterator[tuple[Sender, Prometheus]]:
    """A job that follows a topic, and Prometheus beside it."""
    with (
        Flink(tmp_path / "flink", size=1) as flink,  # a job of one slot once fired no window at all
        Prometheus(tmp_path / "prometheus", flink.cluster.reporters) as prometheus,
    ):
        topic, out = broker.create("monitored", PARTITIONS), tmp_path / "out"
        keep_specs(str(out), [SPEC])
        settings = ["--parallelism=1", "--checkpointing_interval=2000", "--max_bundle_time_mills=200"]
        pipeline = beam.Pipeline(options=cluster_options([*flink.arguments, *settings]))
        following = BrokerJob([SPEC], KafkaEndpoint(topic), JobSettings(watermark_delay_ms=1000))
        following.build(pipeline, Claim(str(out), str(out), 0))
        pipeline.run()
        job = flink.cluster.running_job()
        yield Sender(topic), prometheus
        flink.cluster.cancel(job)


@pytest.mark.nightly
def test_what_happens_to_a_job_is_seen(watched: tuple[Sender, Prometheus]) -> None:
    sender, prometheus = watched

    def windows() -> list[float]:
        sender.send(sender.report(0))
        return prometheus.query(f"sum({OURS}windows) > 1")

    wait_until(windows, "windows have fired on time", seconds=180)
    assert prometheus.firing() == set()

    sound, early, old, late = (sender.report(ahead * MINUTE) for ahead in (0, 11, -11, -1))
    sender.send(*[sound] * 6, *[early] * 30, *[old] * 20, *[late] * 4, b"no report")
    expected = {"received": sender.sent, "counted": sender.sent - 60, "duplicate": 5, "late": 4, "rejected": 51}
    expected |= {"too_early": 30, "expired": 20}

    def counted() -> dict[str, float]:
        return {name: sum(prometheus.query(f"sum({OURS}{name})")) for name in get_args(CounterName)}

    wait_until(lambda: expected.items() <= counted().items(), f"{expected} is what was counted")
    assert counted()["panes"] > counted()["windows"] > 1
    wait_until(lambda: prometheus.firing() == {"ReportsRejected", "ClockSkew"}, "the alerts fire, and no others")

    asked = [*metrics(*(alert["expr"] for alert in ALERTS)), *SHOWN]

    def answered() -> bool:
        return all(prometheus.query(each.replace("$__rate_interval", "1m")) for each in asked)

    wait_until(answered, f"there is an answer to each of {asked}")
    (lag,) = [expression for expression in SHOWN if "time()" in expression]
    assert 0 < prometheus.query(lag)[0] < 60
