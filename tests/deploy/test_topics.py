"""Topics, subscriptions, tables and rights: what is declared is what jobs need, and what provider and broker take."""

import json
import os
import re
import shlex
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hcl2
import pytest

from tests.deploy.test_kubernetes import named
from tests.deploy.tools import DEPLOY, complaints, needs_downloads
from tests.downloads import kafka_jars, kept, pip
from uldp.transforms.io.pubsub.source import RETENTION_MS
from uldp.transforms.io.pubsub.subscription import Subscription, Topic

SCRIPT = DEPLOY / "topics" / "kafka.sh"
FILES = sorted((DEPLOY / "topics" / "pubsub").glob("*.tf"))
#: The provider's schema, as it is published for another language.
PROVIDER = "cdktf-cdktf-provider-google==16.12.1"
Body = dict[str, Any]


def load() -> list[tuple[str, str, Body]]:
    """Return kind (with its type, where it has one), name and body of each block."""
    plain = hcl2.SerializationOptions(strip_string_quotes=True, with_comments=False, explicit_blocks=False)
    found = []
    for path in FILES:
        with path.open(encoding="utf-8") as file:
            for kind, blocks in hcl2.load(file, serialization_options=plain).items():
                for block in blocks:
                    if kind in ("resource", "data"):
                        ((of_type, named),) = block.items()
                        ((name, body),) = named.items()
                        found.append((f"{kind} {of_type}", name, body))
                    elif kind == "variable":
                        ((name, body),) = block.items()
                        found.append((kind, name, body))
                    else:
                        found.append((kind, "", block))
    return found


BLOCKS = load()
RESOURCES = {
    (kind.removeprefix("resource "), name): body for kind, name, body in BLOCKS if kind.startswith("resource ")
}


def each(body: Body) -> list[str]:
    """Return the keys that a resource is made for."""
    keys: list[str] = json.loads(re.fullmatch(r"\$\{toset\((\[.*\])\)\}", body["for_each"])[1])  # type: ignore[index]
    return keys


def grants(kind: str, body: Body) -> Iterator[tuple[str, str, str]]:
    """Yield who may do what with which topic or subscription: member, resource, role."""
    for key in each(body) if "for_each" in body else [""]:
        target, role = (
            body[name].replace("[each.key]", f".{key}").replace("${each.key}", key) for name in (kind, "role")
        )
        (name,) = re.findall(r"([\w-]+)\"?\]?\.id", target)
        yield body["member"], f"{kind} {name}", role


def kafka_topics() -> dict[str, tuple[int, dict[str, str]]]:
    """Return partitions and settings of each topic of the script."""
    found = {}
    for line in SCRIPT.read_text(encoding="utf-8").splitlines():
        if line.startswith("topic ") and not line.endswith("{"):
            _, name, partitions, *options = shlex.split(line)
            assert set(options[::2]) == {"--config"}
            found[name] = int(partitions), dict(setting.split("=", 1) for setting in options[1::2])
    return found


def test_both_brokers_have_the_same_topics() -> None:
    topics = each(RESOURCES["google_pubsub_topic", "topic"])
    assert topics == [*kafka_topics(), "dead-letters"] == ["reports", "estimates", "rejected", "dead-letters"]


def test_the_clock_of_kafka_says_what_is_late() -> None:
    assert kafka_topics()["reports"][1]["message.timestamp.type"] == "LogAppendTime"


def test_of_the_estimates_in_kafka_the_newest_of_a_key_stays() -> None:
    assert kafka_topics()["estimates"][1] == {"cleanup.policy": "compact"}


def test_what_is_published_has_a_subscription_that_keeps_it() -> None:
    kept = RESOURCES["google_pubsub_subscription", "kept"]
    assert {"reports", *each(kept)} == set(each(RESOURCES["google_pubsub_topic", "topic"]))
    assert kept["message_retention_duration"] == f"{RETENTION_MS // 1000}s"
    reports = RESOURCES["google_pubsub_subscription", "reports"]
    assert int(kafka_topics()["reports"][1]["retention.ms"]) == 1000 * int(reports["message_retention_duration"][:-1])
    for subscription in (kept, reports):
        assert subscription["expiration_policy"] == [{"ttl": ""}]


def test_a_dead_letter_is_the_last_resort_and_is_forwarded() -> None:
    (policy,) = RESOURCES["google_pubsub_subscription", "reports"]["dead_letter_policy"]
    assert '"dead-letters"' in policy["dead_letter_topic"]
    assert policy["max_delivery_attempts"] == 100  # the most that there is
    granted = all_grants()
    assert ("${local.forwarder}", "topic dead-letters", Topic.ROLE) in granted
    assert ("${local.forwarder}", "subscription reports", Subscription.ROLE) in granted


def all_grants() -> set[tuple[str, str, str]]:
    kinds = {"google_pubsub_topic_iam_member": "topic", "google_pubsub_subscription_iam_member": "subscription"}
    return {
        grant for (of_type, _), body in RESOURCES.items() if of_type in kinds for grant in grants(kinds[of_type], body)
    }


def test_a_job_may_do_what_it_does_and_no_more() -> None:
    looks = "roles/pubsub.viewer"
    job = {(target, role) for member, target, role in all_grants() if member == "${local.job}"}
    assert job == {
        ("subscription reports", looks),
        ("subscription reports", Subscription.ROLE),
        ("topic reports", looks),
        ("topic estimates", looks),
        ("topic estimates", Topic.ROLE),
        ("topic rejected", looks),
        ("topic rejected", Topic.ROLE),
    }
    roles = {body.get("role") for (of_type, _), body in RESOURCES.items() if "pubsub" not in of_type} - {None}
    assert roles == {"roles/dataflow.worker", "roles/storage.objectAdmin", "roles/bigquery.dataEditor"}


def test_the_table_is_that_of_deploy_bigquery() -> None:
    table = RESOURCES["google_bigquery_table", "estimate_panes"]
    (partitioning,) = table["time_partitioning"]
    said = (DEPLOY / "bigquery" / "estimates.sql").read_text(encoding="utf-8")
    assert f"--time_partitioning_field={partitioning['field']} " in said
    assert f"--clustering_fields={','.join(table['clustering'])} " in said
    columns = {
        column["name"] for column in json.loads((DEPLOY / "bigquery" / "estimate_panes.json").read_text("utf-8"))
    }
    assert {partitioning["field"], *table["clustering"]} <= columns


def test_the_view_is_the_query_of_deploy_bigquery() -> None:
    (pattern,) = re.findall(r'regex\("(.*?)", file', (DEPLOY / "topics" / "pubsub" / "bigquery.tf").read_text("utf-8"))
    statement = (DEPLOY / "bigquery" / "estimates.sql").read_text(encoding="utf-8")
    (query,) = re.findall(pattern.replace(r"\\", "\\"), statement)
    assert statement.endswith(f"AS{query};\n")
    assert query.count("uldp.estimate_panes") == 1


def test_what_is_referred_to_is_there() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in FILES)
    named = {f"{of_type}.{name}" for of_type, name in RESOURCES}
    assert set(re.findall(r"(?<![\w.\"])google_\w+\.\w+", text)) <= named
    assert set(re.findall(r"var\.(\w+)", text)) == {name for kind, name, _ in BLOCKS if kind == "variable"}
    local = {name for kind, _, body in BLOCKS if kind == "locals" for name in body}
    assert set(re.findall(r"local\.(\w+)", text)) == local


@pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed")
def test_terraform_reads_and_formats_it() -> None:
    assert complaints(["terraform", "fmt", "-check", "-diff", str(FILES[0].parent)]) == ""


def test_the_shell_reads_the_script() -> None:
    assert complaints(["sh", "-n", SCRIPT]) == ""
    assert os.access(SCRIPT, os.X_OK)


def provider_types() -> dict[str, Body]:
    """Return the provider's types by name."""
    wheels = kept("provider", PROVIDER, lambda folder: pip("download", "--no-deps", "--dest", folder, PROVIDER))
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        (name,) = (name for name in files.namelist() if name.endswith(".jsii.tgz"))
        with files.open(name) as packed, tarfile.open(fileobj=packed) as package:
            member = package.extractfile("package/.jsii")
            assert member is not None
            types: dict[str, Body] = json.load(member)["types"]
            return types


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def block_type(described: Body) -> str | None:
    """Return the name of the type of what a block holds, or None of an attribute."""
    if "fqn" in described:
        return str(described["fqn"])
    if "collection" in described:
        return block_type(described["collection"]["elementtype"])
    if "union" in described:
        named = (block_type(one) for one in described["union"]["types"])
        return next((name for name in named if name and name.startswith("@cdktf/provider-google.")), None)
    return None


#: Of each resource, whatever its type.
META = {"for_each", "depends_on"}


def misfits(types: dict[str, Body], fqn: str, body: Body) -> Iterator[str]:
    """Yield what a body has that its type does not know, and what it lacks."""
    properties = {one["name"]: one for one in types[fqn]["properties"]}
    given = {camel(name): value for name, value in body.items() if name not in META}
    for name in given.keys() - properties.keys():
        yield f"{fqn}: unknown {name}"
    for name in (name for name, one in properties.items() if not one.get("optional") and name not in given):
        yield f"{fqn}: no {name}"
    for name in given.keys() & properties.keys():
        inner = block_type(properties[name]["type"])
        if inner in types and isinstance(given[name], list):
            for block in given[name]:
                yield from misfits(types, inner, block)


@needs_downloads
def test_the_provider_knows_every_argument() -> None:
    types = provider_types()
    assert (
        "6.50"
        in next(body for kind, _, body in BLOCKS if kind == "terraform")["required_providers"][0]["google"]["version"]
    )
    for (of_type, name), body in RESOURCES.items():
        plain = of_type.removeprefix("google_")
        words = "".join(map(str.capitalize, plain.split("_")))
        fqn = f"@cdktf/provider-google.{camel(plain)}.{words}Config"
        assert list(misfits(types, fqn, body)) == [], name
        assert list(misfits(types, fqn, body | {"nonsense": 1})) != []


def kafka_commands(folder: Path) -> str:
    """Put Kafka's command for topics into a folder; returns a path where a shell finds it."""
    command, main = folder / "kafka-topics.sh", "org.apache.kafka.tools.TopicCommand"
    command.write_text(f'#!/bin/sh\nexec java -cp "{kafka_jars()}/*" {main} "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


@needs_downloads
def test_a_broker_makes_the_topics_once(tmp_path: Path) -> None:
    from confluent_kafka.admin import AdminClient, ConfigResource

    from tests.cluster.kafka import KafkaBroker

    path = kafka_commands(tmp_path)
    with KafkaBroker(tmp_path / "broker") as broker:
        for _ in range(2):
            assert complaints([SCRIPT], BOOTSTRAP=broker.servers, PATH=path) == ""
        admin = AdminClient({"bootstrap.servers": broker.servers})
        there = admin.list_topics(timeout=10).topics
        for name, (partitions, settings) in kafka_topics().items():
            assert len(there[name].partitions) == partitions
            resource = ConfigResource(ConfigResource.Type.TOPIC, name)
            config = admin.describe_configs([resource])[resource].result(timeout=10)
            assert {key: config[key].value for key in settings} == settings


def test_the_tools_are_of_the_version_that_compose_runs() -> None:
    pom = (DEPLOY / "local" / "kafka.xml").read_text(encoding="utf-8")
    compose = (DEPLOY / "compose" / "compose.yaml").read_text(encoding="utf-8")
    kafka = r"<groupId>org.apache.kafka</groupId>\s*<artifactId>[\w.-]+</artifactId>\s*<version>([\d.]+)<"
    (version,) = set(re.findall(kafka, pom))
    assert f"image: apache/kafka:{version}\n" in compose


def test_late_and_rejected_reports_of_the_declared_job_expire() -> None:
    folder = named("to").removeprefix("gs://BUCKET/")
    (rule,) = RESOURCES["google_storage_bucket", "results"]["lifecycle_rule"]
    (condition,), (action,) = rule["condition"], rule["action"]
    assert (condition["age"], action["type"]) == (30, "Delete")
    assert {f"{folder}/late/", f"{folder}/rejected/", f"{folder}/few/"} < set(condition["matches_prefix"])
    assert all(prefix.endswith(("/late/", "/rejected/", "/few/")) for prefix in condition["matches_prefix"])
