"""Jobs on Prism: a backfill as on Beam's local runner in Python, and a topic that is followed without a cluster."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.daemons import wait_until
from tests.cluster.devices import Devices, assert_counted_once, one_each, write_spec
from tests.cluster.following import Results, run_uldp, uldp
from tests.cluster.kafka import KafkaBroker, Sender
from tests.cluster.prism import on_prism, prism
from tests.cluster.streams import KafkaStream
from tests.downloads import ROOT
from tests.embedded import ALIKE, OF_AN_ARCHIVE, outputs_of_branches
from tests.listening import listeners_of_session
from uldp.schemas.flags import Flag
from uldp.schemas.pane import PaneKind
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec

MANHATTAN = ROOT / "examples" / "manhattan"
BATCHES, EACH = 30, 100
SPEC = one_each(BATCHES * EACH)
#: The exit code of ``uldp`` that was told to stop.
STOPPED = 130


@pytest.fixture
def stream(broker: KafkaBroker) -> KafkaStream:
    return KafkaStream(broker)


@contextmanager
def following(source: str, spec: Path, out: Path, stop: signal.Signals) -> Iterator[int]:
    """Follow a topic, and stop at the end as a terminal does it: the command, and all that it has started.

    Gives the process of the command. ``spec`` may be a folder of specs.
    """
    arguments = [
        "--specs" if spec.is_dir() else "--spec",
        spec,
        "--from",
        source,
        "--to",
        out,
        "--watermark-delay",
        "2s",
        *on_prism(),
    ]
    command = subprocess.Popen(uldp("stream", *arguments), stderr=subprocess.PIPE, start_new_session=True)
    try:
        yield command.pid
        (os.killpg if stop is signal.SIGINT else os.kill)(command.pid, stop)
        _, said = command.communicate(timeout=60)
        assert (command.returncode, said.count(b"error: "), said.count(b"Traceback")) == (STOPPED, 1, 0), said.decode()
    finally:
        command.kill()
        command.wait()


@pytest.mark.nightly
def test_a_backfill_writes_the_same_panes(tmp_path: Path) -> None:
    stream = tmp_path / "stream"
    arguments = ["--truth", MANHATTAN / "truth.csv", "--users", 20_000, "--to", stream, "--seed", 3]
    trouble = ["--duplicates", 0.02, "--late", 0.02, "--malformed", 0.02]
    run_uldp("simulate", MANHATTAN / "spec.yaml", *arguments, *trouble)
    said = []
    for name, options in (("python", []), ("prism", on_prism())):
        job = ["--spec", MANHATTAN / "spec.yaml", "--from", stream, "--to", tmp_path / name]
        said.append(run_uldp("backfill", *job, *options))
    panes = {
        name: {
            file.relative_to(tmp_path / name): file.read_bytes()
            for kind in ("counts", "estimates")
            for file in (tmp_path / name / kind).rglob("*.avro")
        }
        for name in ("python", "prism")
    }
    assert len(panes["python"]) == 6
    assert panes["prism"] == panes["python"]
    assert said[0] == said[1]


@pytest.mark.nightly
def test_windows_of_others_change_nothing(tmp_path: Path) -> None:
    assert outputs_of_branches(tmp_path, *on_prism()) == dict.fromkeys(ALIKE, OF_AN_ARCHIVE)


@pytest.mark.nightly
def test_a_topic_is_followed_stopped_and_followed_again(stream: KafkaStream, tmp_path: Path) -> None:
    """What is stopped has lost its state, and reads the topic from its beginning."""
    devices, results, spec = Devices(SPEC), Results(tmp_path / "out"), write_spec(SPEC, tmp_path)

    def send(batches: int) -> None:
        for _ in range(batches):
            stream.publish(devices.batch(EACH))

    with following(stream.uri, spec, results.folder, signal.SIGINT) as command:
        send(BATCHES // 3)
        wait_until(lambda: results.total() == devices.sent, "all is counted", seconds=60)
        programs = {(listener.is_loopback, listener.program.split()[0]) for listener in listeners_of_session(command)}
        assert programs == {(True, str(Path(sys.executable))), (False, str(prism()))}  # as docs/ports.md says
        send(BATCHES // 3)
        wait_until(lambda: results.total() == devices.sent, "all is counted", seconds=60)
    left = [pane for pane in results.panes() if pane.pane.kind is PaneKind.EARLY]
    assert left
    assert all(Flag.INCOMPLETE in pane.flags for pane in left)
    with following(stream.uri, spec, results.folder, signal.SIGTERM):
        send(BATCHES // 3)
        results.wait_for(devices.sent)
    assert results.total() == devices.sent
    assert_counted_once(devices, results)


@pytest.mark.nightly
def test_specs_come_while_a_topic_is_followed_and_audits_agree(broker: KafkaBroker, tmp_path: Path) -> None:
    topic = broker.create("specs-on-prism", 1, retention_ms="-1", message_timestamp_type="LogAppendTime")
    sender, results, specs = Sender(topic), Results(tmp_path / "out"), tmp_path / "specs"
    specs.mkdir()

    def put(name: str) -> None:
        write_spec(SPEC.model_copy(update={"collection": name}), tmp_path).replace(specs / f"{name}.yaml")

    def send() -> None:
        now = time.time_ns() // 1_000_000
        reports = [
            Report(name, 1, os.urandom(16), now, 0) for name in ("first", "second", "third") for _ in range(EACH)
        ]
        sender.send(0, [Message(report.encode(), now) for report in reports])

    def opened(name: str) -> bool:
        send()  # what no spec explains has the folder looked at
        kept = results.folder / "specs" / f"{name}-v1" / "spec.yaml"
        opens = CollectionSpec.load(kept).opens if kept.exists() else None
        return opens is not None and time.time() > opens.timestamp()

    def counted(name: str) -> int:
        return sum(pane.accounting.counted for pane in results.panes() if pane.collection == name)

    put("first")
    for new, stop in (("second", signal.SIGINT), ("third", signal.SIGTERM)):
        with following(str(topic), specs, results.folder, stop):
            send()
            wait_until(lambda: counted("first") > 0, "something is counted", seconds=60)
            put(new)
            wait_until(partial(opened, new), f"{new} has opened", seconds=120)
            send()
            wait_until(partial(counted, new), f"{new} is counted", seconds=60)
    run_uldp("audit", topic, results.folder)
