"""What names a topic, and what is said where it cannot be used."""

import pickle
import sys
from pathlib import Path
from typing import Literal

import pytest

from tests.fakes.kafka import (
    ALL_BROKERS_DOWN,
    CREDENTIALS,
    INVALID,
    NO_PERMISSION,
    NO_TOPIC,
    TIMED_OUT,
    TLS,
    TOPIC,
    Broker,
    Reason,
)
from uldp.schemas.errors import EndpointError
from uldp.transforms.io.kafka.producer import WriteToKafka
from uldp.transforms.io.kafka.source import KafkaSource
from uldp.transforms.io.kafka.topic import KafkaTopic, read_config


@pytest.mark.parametrize(
    ("uri", "servers", "name"),
    [
        ("kafka:localhost:9092/reports", "localhost:9092", "reports"),
        ("kafka:a.b-c:1,10.0.0.1:65535/A.b_c-9", "a.b-c:1,10.0.0.1:65535", "A.b_c-9"),
        ("kafka:[::1]:9092/x", "[::1]:9092", "x"),
        ("kafka:h:1/" + "x" * 249, "h:1", "x" * 249),
    ],
)
def test_a_topic_is_named_by_a_uri(uri: str, servers: str, name: str) -> None:
    assert KafkaTopic.parse(uri) == KafkaTopic(servers, name)
    assert str(KafkaTopic.parse(uri)) == uri


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "kafka:",
        "pubsub:h:1/t",
        "h:1/t",
        "kafka:h:0/t",
        "kafka:h:65536/t",
        "kafka:h:x/t",
        "kafka:h:1 /t",
        "kafka://h:1/t",
    ],
)
def test_what_names_no_broker_is_refused(uri: str) -> None:
    with pytest.raises(EndpointError) as caught:
        KafkaTopic.parse(uri)
    assert str(caught.value) == f"{uri}: not a Kafka topic; write kafka:HOST:PORT/TOPIC"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ü", "a\n", "x" * 250])
def test_what_names_no_topic_is_refused(name: str) -> None:
    with pytest.raises(EndpointError, match="cannot be the name of a topic; use letters, digits"):
        KafkaTopic.parse(f"kafka:h:1/{name}")


def test_a_missing_client_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(
        EndpointError, match=r"^Kafka needs confluent_kafka.*; install it: pip install 'uldp-stream\[kafka\].*'$"
    ):
        KafkaSource(TOPIC).create_reader(None, None).start()


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (NO_TOPIC, "the topic does not exist; create it"),
        (NO_PERMISSION, "the client has no permission; grant"),
        (TIMED_OUT, "the request failed"),
    ],
)
def test_a_check_that_fails_is_one_line_with_a_remedy(broker: Broker, code: int, remedy: str) -> None:
    broker.refuses = Reason(code)
    with pytest.raises(EndpointError, match=rf"^kafka:broker:9092/reports: {remedy}.* \(reason {code}\)$"):
        TOPIC.check()


@pytest.mark.parametrize("needs", ["READ", "WRITE"])
def test_a_check_asks_what_is_permitted(broker: Broker, needs: Literal["READ", "WRITE"]) -> None:
    broker.permits = {"DESCRIBE", needs}
    assert TOPIC.check(needs) == [0]
    broker.permits = {"DESCRIBE", "READ", "WRITE"} - {needs}
    with pytest.raises(
        EndpointError,
        match=rf"^kafka:broker:9092/reports: the client has no permission; grant .* \(missing: {needs}\)$",
    ):
        TOPIC.check(needs)


@pytest.mark.parametrize(
    ("met", "answers", "remedy"),
    [
        ([Reason(CREDENTIALS)], None, r"the broker refused the credentials; .* \(reason -169\)"),
        ([Reason(TLS)], TIMED_OUT, r"the TLS connection failed; .* \(reason -181\)"),
        ([Reason(INVALID, dead=True)], None, r"\(reason -186\)"),
        ([], TIMED_OUT, r"check that a broker answers at this address, .* \(reason -185\)"),
    ],
)
def test_what_a_check_meets_says_more_than_that_nobody_answers(
    broker: Broker, met: list[Reason], answers: int | None, remedy: str
) -> None:
    broker.meets = [Reason(ALL_BROKERS_DOWN), *met]
    broker.refuses = None if answers is None else Reason(answers)
    with pytest.raises(EndpointError, match=remedy):
        TOPIC.check()


# The config.


def test_a_config_is_what_all_clients_are_made_of(broker: Broker, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("# as of today\n\n a.b = c=d \nbootstrap.servers=elsewhere:1\nacks=0", encoding="utf-8")
    topic = KafkaTopic.parse(str(TOPIC), config)
    assert topic.config == str(config)
    for client in (topic.consumer(print), topic.producer(print)):
        assert client.settings["a.b"] == "c=d"
        assert client.settings["bootstrap.servers"] == "broker:9092"
    assert (client.settings["acks"], client.settings["enable.idempotence"]) == ("all", True)


def test_a_secret_stays_in_its_file(tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("sasl.password=hunter2", encoding="utf-8")
    topic = KafkaTopic.parse(str(TOPIC), config)
    source = KafkaSource(topic)
    mark = source.create_reader(None, None).get_checkpoint_mark()
    told = [repr(source), str(topic), repr(mark), repr(pickle.dumps([source, WriteToKafka(topic), mark]))]
    assert not [text for text in told if "hunter2" in text]
    assert read_config(str(config)) == {"sasl.password": "hunter2"}


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_byte_order_mark_is_no_part_of_a_setting(mark: str, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text(f"{mark}sasl.username=me\r\nsasl.password=a\ufeff", encoding="utf-8")
    assert read_config(str(config)) == {"sasl.username": "me", "sasl.password": "a\ufeff"}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "No such file or directory; check the path: each worker needs this file of settings for Kafka too"),
        (b"a=b\nsasl.password hunter2", "line 2 is not a setting; write NAME=VALUE"),
        (b"=hunter2", "line 1 is not a setting; write NAME=VALUE"),
        (b"\xff=hunter2", "not UTF-8; check the path: each worker needs this file of settings for Kafka too"),
        (
            b"a=b\n" * (1 << 19),
            (
                "the file has more than 1,048,576 bytes; "
                "check the path: each worker needs this file of settings for Kafka too"
            ),
        ),
        (b"wrong=hunter2", "reason -186"),
    ],
)
def test_a_config_that_is_none_is_one_line(broker: Broker, tmp_path: Path, content: bytes | None, line: str) -> None:
    config = tmp_path / "client.properties"
    if content is not None:
        config.write_bytes(content)
    with pytest.raises(EndpointError) as caught:
        KafkaTopic.parse(str(TOPIC), config).check()
    assert str(caught.value) == f"{config}: {line}"
