"""A broker of Apache Kafka on this machine: one process, which is its own controller. It comes from Maven."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.cluster.daemons import SHORT_LIVED, Daemon, free_port, wait_until
from tests.downloads import kafka_jars
from uldp.schemas.records import Message
from uldp.transforms.io.kafka.consumers import CONSUMERS
from uldp.transforms.io.kafka.topic import KafkaTopic

#: Any 16 bytes in Base64: whose the data is.
CLUSTER_ID = "dWxkcC1zdHJlYW0tdGVzdA"
#: Of everything that asks for one.
PASSWORD = "never-to-be-shown"


def java(main: str, *arguments: str) -> list[str]:
    """Return the command that runs a class of Kafka's."""
    found = shutil.which("java")
    if found is None:
        raise RuntimeError("java is not installed; Kafka needs Java 17")
    return [found, "-Xmx512m", *SHORT_LIVED, "-classpath", str(kafka_jars() / "*"), main, *arguments]


@dataclass
class KafkaBroker:
    """One broker; a context manager that begins when it answers.

    After ``stop``, ``start`` brings it back with its address and its data.

    Attributes:
        folder: For its data and its log.
        settings: Added to the broker's own.
    """

    folder: Path
    settings: Mapping[str, str] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        port, controller = free_port(), free_port()
        self.servers = f"127.0.0.1:{port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CLIENT://{self.servers},CONTROLLER://127.0.0.1:{controller}",
            "inter.broker.listener.name": "CLIENT",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.folder / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            **self.settings,
        }
        file = self.folder / "server.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        form = java("kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config", str(file))
        subprocess.run(form, check=True, capture_output=True)
        self._daemon = Daemon(java("kafka.Kafka", str(file)), self.folder / "broker.log")
        self._admin = AdminClient({**self._client(), "bootstrap.servers": self.servers, "log_level": 0})
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        CONSUMERS.close()  # of this process: without their broker, they would tell so until it ends
        self.stop()

    def _client(self) -> Mapping[str, str]:
        """What a client that may do everything needs to connect."""
        return {}

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._daemon.__enter__()
        try:
            self._daemon.wait_until(self._answers, "the broker answers")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop it; does nothing where it does not run."""
        self._daemon.__exit__(None, None, None)

    def _answers(self) -> bool:
        try:
            return len(self._admin.list_topics(timeout=1).brokers) == 1
        except KafkaException:
            return False

    def create(self, name: str, partitions: int = 1, **settings: str) -> KafkaTopic:
        """Make a topic, with settings whose dots are underscores."""
        config = {key.replace("_", "."): value for key, value in settings.items()}
        topic = NewTopic(name, partitions, 1, config=config)
        self._admin.create_topics([topic])[name].result(timeout=30)
        made = KafkaTopic(self.servers, name)
        wait_until(lambda: self._there(made, partitions), f"topic {name} is there", 30)
        return made

    def grow(self, topic: KafkaTopic, partitions: int) -> None:
        """Add partitions to a topic, to this number."""
        self._admin.create_partitions([NewPartitions(topic.name, partitions)])[topic.name].result(timeout=30)
        wait_until(lambda: self._there(topic, partitions), f"topic {topic.name} has grown", 30)

    def remove(self, topic: KafkaTopic, partition: int, before: int) -> None:
        """Remove the messages of a partition before an offset, as its retention would do it."""
        (removed,) = self._admin.delete_records([TopicPartition(topic.name, partition, before)]).values()
        removed.result(timeout=30)

    def delete(self, name: str) -> None:
        """Delete a topic."""
        self._admin.delete_topics([name])[name].result(timeout=30)

    def _there(self, topic: KafkaTopic, partitions: int) -> bool:
        return len(self._admin.list_topics(topic.name, timeout=5).topics[topic.name].partitions) == partitions


@dataclass
class SecureKafkaBroker(KafkaBroker):
    """One that speaks TLS, asks for a password, and permits its clients only what they were granted."""

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        store, self._certificate = self.folder / "broker.p12", self.folder / "broker.pem"
        keytool = [
            "keytool",
            "-storetype",
            "PKCS12",
            "-keystore",
            str(store),
            "-storepass",
            PASSWORD,
            "-alias",
            "broker",
        ]
        key = ["-genkeypair", "-keyalg", "RSA", "-dname", "CN=broker", "-ext", "SAN=ip:127.0.0.1"]
        subprocess.run([*keytool, *key], check=True, capture_output=True)
        export = ["-exportcert", "-rfc", "-file", str(self._certificate)]
        subprocess.run([*keytool, *export], check=True, capture_output=True)
        users = " ".join(f'user_{user}="{PASSWORD}"' for user in ("admin", "client"))
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        self.settings = {
            "listener.security.protocol.map": "CLIENT:SASL_SSL,CONTROLLER:PLAINTEXT",
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(store),
            "ssl.keystore.password": PASSWORD,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._certificate),  # to reach itself
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.client.plain.sasl.jaas.config": f'{login} username="admin" password="{PASSWORD}" {users};',
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin;User:ANONYMOUS",  # who is on the controller's listener has no name
        }
        return super().__enter__()

    def _client(self) -> Mapping[str, str]:
        return self._login("admin")

    def _login(self, user: str, **changed: str) -> dict[str, str]:
        login = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(self._certificate), "sasl.mechanism": "PLAIN"}
        changes = {name.replace("_", "."): value for name, value in changed.items()}
        return {**login, "sasl.username": user, "sasl.password": PASSWORD, **changes}

    def config(self, user: str = "client", **changed: str) -> Path:
        """Write a file of what a client needs, with other settings, whose dots are underscores."""
        found, path = tempfile.mkstemp(dir=self.folder, suffix=".properties", text=True)
        with os.fdopen(found, "w", encoding="utf-8") as file:
            file.writelines(f"{name}={value}\n" for name, value in self._login(user, **changed).items())
        return Path(path)

    def grant(self, topic: KafkaTopic, *operations: AclOperation) -> None:
        """Permit the client something on a topic."""
        for operation in operations:
            granted = (ResourceType.TOPIC, topic.name, ResourcePatternType.LITERAL, "User:client", "*", operation)
            acl = AclBinding(*granted, AclPermissionType.ALLOW)
            self._admin.create_acls([acl])[acl].result(timeout=30)


class Sender:
    """Sends to a topic by one producer. A new one waits for half a second, until the broker has given it an id."""

    def __init__(self, topic: KafkaTopic) -> None:
        self._topic = topic
        # Without idempotence, records that the broker takes only when they are sent again come behind later ones.
        self._producer = Producer({"bootstrap.servers": topic.servers, "linger.ms": 5, "enable.idempotence": True})

    def send(self, partition: int, messages: Sequence[Message]) -> None:
        """Write messages to a partition, in order, and wait until the broker has them."""
        refused: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: object) -> None:
            if error is not None:
                refused.append(error)

        for message in messages:
            self._producer.produce(
                self._topic.name,
                message.data,
                partition=partition,
                timestamp=message.publish_time,
                headers=list(message.attributes.items()),
                on_delivery=delivered,
            )
        if self._producer.flush(60):
            raise TimeoutError(f"{self._topic}: messages were not taken within 60 s")
        if refused:
            raise KafkaException(refused[0])


def send(topic: KafkaTopic, partition: int, messages: Sequence[Message]) -> None:
    """Write messages to a partition by a producer of their own; see ``Sender``."""
    Sender(topic).send(partition, messages)
