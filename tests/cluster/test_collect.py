"""Devices post to ``uldp collect``, which writes to a real broker: each report that was taken is counted once."""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests import build
from tests.cluster.daemons import Daemon, wait_until
from tests.cluster.devices import GROWING, IMPOSSIBLE, Devices, assert_counted_once, one_each, write_spec
from tests.cluster.following import Results, run_uldp, uldp
from tests.cluster.kafka import KafkaBroker
from tests.cluster.prism import on_prism
from tests.cluster.pubsub import PubSubServer
from tests.cluster.streams import KafkaStream
from tests.pipelines.intake.posting import Collecting, post
from uldp.schemas.pane import Accounting

BATCHES, EACH = 10, 100
SPEC = one_each(BATCHES * EACH)
AT_ONCE = 8


@pytest.fixture(params=["kafka", "pubsub"])
def ends(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """Where a server writes to, and where a job reads what it wrote."""
    if request.param == "kafka":
        stream = KafkaStream(request.getfixturevalue("broker"))
        yield stream.uri, stream.uri
        return
    with PubSubServer(tmp_path / "pubsub") as server:
        server.set_in(monkeypatch)
        topic, subscription = server.create("collected")
        yield str(topic), str(subscription)


@pytest.mark.nightly
def test_each_report_that_was_taken_is_counted_once(ends: tuple[str, str], tmp_path: Path) -> None:
    to, source = ends
    spec, devices, results = write_spec(SPEC, tmp_path), Devices(SPEC), Results(tmp_path / "out")
    runner = on_prism() if source.startswith("kafka:") else []
    arguments = ["--spec", spec, "--from", source, "--to", results.folder, "--watermark-delay", "2s", *runner]
    stream = Daemon(uldp("stream", *arguments), tmp_path / "stream.log", starts_others=True)
    with Collecting(spec, to) as collecting, stream, ThreadPoolExecutor(AT_ONCE) as posting:
        bodies = [body for _ in range(BATCHES) for body in devices.batch(EACH)]
        answers = Counter(posting.map(lambda body: post(collecting.port, body)[0], bodies))
        refused = BATCHES * IMPOSSIBLE
        assert answers == {202: devices.sent.received - refused, 422: refused}
        expected = replace(devices.sent, received=devices.sent.received - refused, rejected=0)
        results.wait_for(expected)
    assert results.total() == expected
    assert_counted_once(devices, results)


def taken(port: int, body: bytes) -> bool:
    return post(port, body)[0] == 202


@pytest.mark.nightly
def test_what_a_broker_that_is_away_does_not_take_is_sent_again_and_counted_once(tmp_path: Path) -> None:
    spec, results, now = write_spec(GROWING, tmp_path), Results(tmp_path / "out"), time.time_ns() // 1_000_000
    before, unanswered, after = (build.report(number, 0, now, GROWING.key).encode() for number in range(3))
    with KafkaBroker(tmp_path / "kafka") as broker:
        stream = KafkaStream(broker)
        with Collecting(spec, stream.uri) as collecting:
            assert post(collecting.port, before)[0] == 202
            broker.stop()
            status, headers, _ = post(collecting.port, unanswered)
            assert (status, headers["retry-after"]) == (503, "1")
            broker.start()
            for body in (unanswered, after):
                wait_until(partial(taken, collecting.port, body), "the broker takes it", 120)
        run_uldp("backfill", "--spec", spec, "--from", stream.uri, "--to", results.folder)
    total = results.total()
    assert total == Accounting(received=3 + total.duplicate, counted=3, duplicate=total.duplicate)
    assert total.duplicate >= 1
