"""What ``uldp`` says where a broker refuses: one line on what to do, and a code that is not zero."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation

from tests.cluster.daemons import wait_until
from tests.cluster.devices import GROWING, OnTime, write_spec
from tests.cluster.following import Results, run_uldp, uldp
from tests.cluster.kafka import PASSWORD, KafkaBroker, SecureKafkaBroker
from tests.cluster.prism import on_prism
from tests.cluster.pubsub import PubSubServer
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest

EXAMPLE = Path(__file__).parents[2] / "examples" / "manhattan"
SPEC, TRUTH = EXAMPLE / "spec.yaml", EXAMPLE / "truth.csv"
#: A cluster that is not there: nothing is sent to it where a broker refuses.
RUNNER = ["--runner=PortableRunner", "--job_endpoint=127.0.0.1:1"]


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafkaBroker]:
    with SecureKafkaBroker(tmp_path_factory.mktemp("secure")) as started:
        yield started


def refusal(out: Path, source: object, *options: object) -> str:
    """Follow a stream; returns the one line that is said before anything is written."""
    command = uldp("stream", "--spec", SPEC, "--from", source, "--to", out, *options, *RUNNER)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, out.exists()) == (1, "", False)
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert PASSWORD not in line
    return line


def test_a_topic_of_kafka_that_is_deleted_under_a_job(broker: KafkaBroker, tmp_path: Path) -> None:
    """Beam's worker prints a traceback of it, and each layer of the runner logs that again."""
    topic, spec, results = broker.create("deleted-later", 2), write_spec(GROWING, tmp_path), Results(tmp_path / "out")
    job = ["--spec", spec, "--from", topic, "--to", results.folder, "--watermark-delay", "1s", *on_prism()]
    command = subprocess.Popen(uldp("stream", *job), stderr=subprocess.PIPE, text=True)
    try:
        OnTime(topic).send(0)
        wait_until(results.panes, "a pane")
        broker.delete(topic.name)
        _, said = command.communicate(timeout=60)
    finally:
        command.kill()
        command.wait()
    senders, line = said.splitlines()
    assert "senders write the publish times" in senders
    assert line.startswith(f"error: {topic}: the topic does not exist; create it, or correct its name (")
    assert command.returncode == 1


@pytest.mark.parametrize(
    ("name", "changed", "remedy"),
    [
        ("password", {"sasl_password": "wrong"}, "the broker refused the credentials; correct sasl.* in the file of"),
        pytest.param(
            "authority",
            {"ssl_ca_location": ""},
            "the TLS connection failed; correct security.protocol and ssl.* in the",
            marks=pytest.mark.nightly,
        ),
        ("misspelt", {"sasl_pasword": "x"}, 'No such configuration property: "sasl.pasword"'),
    ],
)
def test_a_config_of_kafka_that_is_wrong(
    secure: SecureKafkaBroker, tmp_path: Path, name: str, changed: dict[str, str], remedy: str
) -> None:
    config = secure.config(**changed)
    assert remedy in refusal(tmp_path / "out", secure.create(name), "--kafka-config", config)


@pytest.mark.parametrize(
    ("name", "granted", "missing"),
    [pytest.param("nothing", [], "DESCRIBE", marks=pytest.mark.nightly), ("looking", [AclOperation.DESCRIBE], "READ")],
)
def test_a_topic_of_kafka_that_must_not_be_read(
    secure: SecureKafkaBroker, tmp_path: Path, name: str, granted: list[AclOperation], missing: str
) -> None:
    topic = secure.create(name)
    secure.grant(topic, *granted)
    line = refusal(tmp_path / "out", topic, "--kafka-config", secure.config())
    assert f"/{name}: the client has no permission; grant it DESCRIBE, and READ or WRITE, on the topic" in line
    assert missing in line


def test_a_topic_of_kafka_that_must_not_be_written_to(secure: SecureKafkaBroker, tmp_path: Path) -> None:
    topic = secure.create("read-only")
    secure.grant(topic, AclOperation.READ)
    line = refusal(tmp_path / "out", topic, "--estimates-to", topic, "--kafka-config", secure.config())
    assert "/read-only: the client has no permission; " in line
    assert line.endswith("(missing: WRITE)")


def test_who_has_a_password_and_permissions_is_served(secure: SecureKafkaBroker, tmp_path: Path) -> None:
    topic = secure.create("served", retention_ms="-1")
    secure.grant(topic, AclOperation.READ, AclOperation.WRITE)
    client = ["--kafka-config", secure.config()]
    run_uldp("simulate", SPEC, "--truth", TRUTH, "--users", 2000, "--to", topic, *client)
    run_uldp("backfill", "--spec", SPEC, "--from", topic, "--to", tmp_path / "out", *client)
    assert sum(pane.n for pane in newest(ResultsFolder(tmp_path / "out").statistics())) == 2000


@pytest.mark.parametrize(
    ("denied", "remedy"),
    [
        ("", "does not exist; create it with: gcloud pubsub subscriptions create reports --project=project"),
        ("GetSubscription", "no permission; grant the job's account roles/pubsub.viewer and roles/pubsub.subscriber"),
        ("Pull", "no permission; grant the job's account roles/pubsub.viewer and roles/pubsub.subscriber"),
    ],
)
def test_a_subscription(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, denied: str, remedy: str) -> None:
    with PubSubServer(tmp_path / "pubsub", denied) as server:
        server.set_in(monkeypatch)
        if denied:
            server.create("reports")
        assert remedy in refusal(tmp_path / "out", "pubsub:projects/project/subscriptions/reports")


def test_a_topic_of_pubsub_that_must_not_be_published_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with PubSubServer(tmp_path / "pubsub", denied="Publish") as server:
        server.set_in(monkeypatch)
        topic, subscription = server.create("reports")
        line = refusal(tmp_path / "out", subscription, "--estimates-to", topic)
    assert "no permission; grant the job's account roles/pubsub.viewer and roles/pubsub.publisher" in line
    assert line.endswith("(missing: pubsub.topics.publish)")
