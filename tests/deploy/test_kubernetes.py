"""Flink on Kubernetes: manifests that their schemas take, that fit together, and to which an overlay gives names."""

import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.stager import Stager

from tests.deploy.test_compose import POOL, POOL_PORT, flink_config, options
from tests.deploy.tools import DEPLOY, complaints, needs_downloads, tools
from tests.downloads import kept
from uldp.pipelines.cli import cli
from uldp.transforms.io.endpoints import parse_endpoint

FOLDER = DEPLOY / "kubernetes" / "base"
#: The operator that the manifests are for, and the Kubernetes that it is for.
OPERATOR, KUBERNETES = "1.10.0", "1.31"
#: What whoever applies them puts names for, as in the flex template.
PLACEHOLDERS = {"BUCKET", "REGION", "PROJECT", "REPOSITORY", "VERSION"}
#: Namespaces of others.
NAMESPACES = {"OPERATOR", "MONITORING"}
#: Words of Kubernetes, Flink and Beam.
CAPITALS = {"ENABLE_BUILT_IN_PLUGINS", "EXTERNAL", "ALL", "TCP", "UDP"}
#: What is another here than in deploy/flink.
FOLDERS = {"state.checkpoints.dir", "state.savepoints.dir"}


def load(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")))


(FLINK,) = load("flink.yaml")
SERVER, SERVICE = load("jobserver.yaml")
(JOB,) = load("job.yaml")
CONFIG = FLINK["spec"]["flinkConfiguration"]
POD = JOB["spec"]["template"]["spec"]
ARGUMENTS = options(POD["containers"][0]["args"][1:])


def task_manager(name: str) -> dict[str, Any]:
    containers = FLINK["spec"]["taskManager"]["podTemplate"]["spec"]["containers"]
    found: dict[str, Any] = next(container for container in containers if container["name"] == name)
    return found


def test_flink_is_configured_as_in_deploy_flink() -> None:
    expected = {key: str(value).lower() if value is True else str(value) for key, value in flink_config().items()}
    more = {
        "high-availability.type",
        "high-availability.storageDir",
        "kubernetes.operator.pod-template.merge-arrays-by-name",
        "kubernetes.taskmanager.service-account",
        "metrics.internal.query-service.port",
        "taskmanager.data.port",
    }
    assert CONFIG.keys() == expected.keys() | more
    same = expected.keys() - FOLDERS
    assert {key: CONFIG[key] for key in same} == {key: expected[key] for key in same}
    assert all(CONFIG[key].startswith("gs://BUCKET/flink/") for key in FOLDERS | {"high-availability.storageDir"})


def test_flink_is_of_one_version_everywhere() -> None:
    version = FLINK["spec"]["flinkVersion"].removeprefix("v").replace("_", ".")
    (patch,) = re.fullmatch(rf"flink:({re.escape(version)}\.\d+)-java17", FLINK["spec"]["image"]).groups()  # type: ignore[union-attr]
    (main,) = FLINK["spec"]["podTemplate"]["spec"]["containers"]
    assert main["env"] == [{"name": "ENABLE_BUILT_IN_PLUGINS", "value": f"flink-gs-fs-hadoop-{patch}.jar"}]
    assert f"beam-runners-flink-{version}" in (DEPLOY / "flink" / "pom.xml").read_text(encoding="utf-8")
    assert FLINK["spec"]["image"] in (DEPLOY / "compose" / "compose.yaml").read_text(encoding="utf-8")


def test_each_task_manager_has_a_pool_of_its_own() -> None:
    assert task_manager("pool")["command"] == POOL
    assert options(task_manager("pool")["args"])["service_port"] == str(POOL_PORT)
    assert ARGUMENTS["environment_config"] == f"localhost:{POOL_PORT}"
    assert CONFIG["taskmanager.numberOfTaskSlots"] == "1"


def test_the_job_finds_its_server_and_the_server_finds_flink() -> None:
    (container,) = SERVER["spec"]["template"]["spec"]["containers"]
    server = options(container["args"])
    ports = {port["name"]: port["port"] for port in SERVICE["spec"]["ports"]}
    assert ports == {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"jobs": int(server["job-port"]), "artifacts": int(server["artifact-port"])}
    assert SERVICE["spec"]["selector"].items() <= SERVER["spec"]["template"]["metadata"]["labels"].items()
    assert SERVICE["spec"]["selector"] == SERVER["spec"]["selector"]["matchLabels"]
    name = SERVICE["metadata"]["name"]
    assert ARGUMENTS["job_endpoint"] == f"{name}:{ports['jobs']}"
    assert ARGUMENTS["artifact_endpoint"] == f"{name}:{ports['artifacts']}"
    assert server["flink-master"] == f"{FLINK['metadata']['name']}-rest:8081"  # as the operator calls it


def test_the_job_has_options_that_there_are() -> None:
    (container,) = POD["containers"]
    assert container["command"] == ["uldp"]
    own = {option.opts[0].removeprefix("--") for option in cli.commands[container["args"][0]].params}
    beam = PipelineOptions([f"--{name}={value}" for name, value in ARGUMENTS.items() if name not in own])
    known = beam.get_all_options(retain_unknown_options=False)
    assert beam.get_all_options(retain_unknown_options=True).keys() == known.keys()


def test_the_job_sends_no_files_along(tmp_path: Path) -> None:
    # The job server would keep them in a folder of its own, where no worker finds them.
    beam = PipelineOptions([f"--{name}={value}" for name, value in ARGUMENTS.items()])
    assert Stager.create_job_resources(beam, str(tmp_path)) == []


def test_what_the_job_reads_and_writes_is_declared() -> None:
    declared = (DEPLOY / "topics" / "pubsub" / "main.tf").read_text(encoding="utf-8")
    endpoints = [parse_endpoint(named("from"), None), parse_endpoint(named("estimates-to"), None)]
    endpoints += [parse_endpoint(named("rejected-to"), None)]
    for endpoint in endpoints:
        assert f'"{str(endpoint).rpartition("/")[2]}"' in declared


def named(option: str) -> str:
    """Return an argument with a project that there could be."""
    return ARGUMENTS[option].replace("PROJECT", "example")


def test_the_job_is_submitted_once() -> None:
    assert JOB["spec"]["backoffLimit"] == 0
    assert POD["restartPolicy"] == "Never"


def test_placeholders_are_those_of_the_flex_template() -> None:
    text = "".join(re.sub("#.*", "", path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.yaml"))
    found = set(re.findall(r"(?<![\w-])[A-Z]{3,}(?![\w:])", text)) - CAPITALS
    assert found == PLACEHOLDERS | NAMESPACES
    image = json.loads((DEPLOY / "dataflow" / "template.json").read_text(encoding="utf-8"))["image"]
    assert task_manager("pool")["image"] == POD["containers"][0]["image"] == image
    assert SERVER["spec"]["template"]["spec"]["containers"][0]["image"] == image.replace(":", "-jobserver:")


@needs_downloads
@pytest.mark.parametrize("name", ["account.yaml", "network.yaml", "jobserver.yaml", "job.yaml"])
def test_kubernetes_takes_it(name: str) -> None:
    validate = [str(tools() / "bin" / "kubernetes-validate"), "--strict", f"--kubernetes-version={KUBERNETES}"]
    assert complaints([*validate, str(FOLDER / name)]) == ""


def deployment_schema() -> dict[str, Any]:
    """Return the schema of a FlinkDeployment, which the operator's archive holds."""

    def download(folder: Path) -> None:
        artifact = f"-Dartifact=org.apache.flink:flink-kubernetes-operator-api:{OPERATOR}"
        maven = ["mvn", "--quiet", "--batch-mode", "dependency:copy", artifact, f"-DoutputDirectory={folder}"]
        subprocess.run(maven, check=True)

    archive = kept("operator", OPERATOR, download) / f"flink-kubernetes-operator-api-{OPERATOR}.jar"
    with zipfile.ZipFile(archive) as files:
        text = files.read("META-INF/fabric8/flinkdeployments.flink.apache.org-v1.yml")
    (version,) = yaml.load(text, yaml.CSafeLoader)["spec"]["versions"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    # What they are is no part of it.
    schema["properties"] |= {"apiVersion": {}, "kind": {}, "metadata": {}}
    return schema


def close(schema: Any) -> Any:
    """Refuse fields that a schema does not name, which Kubernetes would drop."""
    if isinstance(schema, list):
        return [close(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: close(part) for name, part in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        closed.setdefault("additionalProperties", False)
    return closed


@pytest.mark.nightly
@needs_downloads
def test_the_operator_takes_it(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(close(deployment_schema())), encoding="utf-8")
    check = [str(tools() / "bin" / "check-jsonschema"), f"--schemafile={schema}"]
    manifest = FOLDER / "flink.yaml"
    assert complaints([*check, str(manifest)]) == ""
    wrong = tmp_path / "wrong.yaml"
    for right, mistyped in (
        ("args: [--", "arguments: [--"),
        ("v1_19", "v1_99"),
        ('"20000"', "20000"),
        ("cpu: 1\n", "cpu: x\n"),
    ):
        wrong.write_text(manifest.read_text(encoding="utf-8").replace(right, mistyped), encoding="utf-8")
        assert complaints([*check, str(wrong)]) != "", mistyped


OVERLAY = FOLDER.parent / "overlays" / "example"
KUSTOMIZATION = yaml.safe_load((OVERLAY / "kustomization.yaml").read_text(encoding="utf-8"))
NAMES = yaml.safe_load((OVERLAY / "names.yaml").read_text(encoding="utf-8"))
RESOURCES = yaml.safe_load((FOLDER / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
BASE = [each for name in RESOURCES for each in yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8"))]
COMPONENT = "app.kubernetes.io/component"
PLACEHOLDER = re.compile(rf"\b({'|'.join(PLACEHOLDERS | NAMESPACES)})\b")

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl, which has kustomize, is missing")


def kustomize(folder: Path) -> str:
    done = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def identity(manifest: dict[str, Any]) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


def leaves(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield each value that is neither a map nor a list, with its path."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else None
    if items is None:
        yield path, node
    else:
        for key, value in items:
            yield from leaves(value, (*path, key))


def test_the_base_lists_each_manifest() -> None:
    assert sorted(RESOURCES) == sorted(path.name for path in FOLDER.glob("*.yaml") if path.name != "kustomization.yaml")
    assert len({identity(each) for each in BASE}) == len(BASE)


@needs_kubectl
def test_the_overlay_gives_each_name_and_changes_nothing_else() -> None:
    made = {identity(each): each for each in yaml.safe_load_all(kustomize(OVERLAY))}
    assert made.keys() == {identity(each) for each in BASE}
    for manifest in BASE:
        before, after = dict(leaves(manifest)), dict(leaves(made[identity(manifest)]))
        added = after.keys() - before.keys()
        assert {path[-1] for path in added} == {"namespace"}
        assert {after[path] for path in added} == {KUSTOMIZATION["namespace"]}
        assert before.keys() <= after.keys()
        for path, value in before.items():
            assert (after[path] != value) == bool(PLACEHOLDER.search(str(value))), path
            assert not PLACEHOLDER.search(str(after[path])), path


@needs_kubectl
def test_the_base_is_what_the_files_say() -> None:
    made = {identity(each): each for each in yaml.safe_load_all(kustomize(FOLDER))}
    assert made == {identity(each): each for each in BASE}


def test_a_label_tells_the_job_from_what_it_needs() -> None:
    labels = {identity(each): each["metadata"].get("labels", {}).get(COMPONENT) for each in BASE}
    assert {name for name, label in labels.items() if label == "job"} == {("Job", "uldp-stream")}


@needs_kubectl
@needs_downloads
def test_kubernetes_takes_what_the_overlay_makes(tmp_path: Path) -> None:
    made = [each for each in yaml.safe_load_all(kustomize(OVERLAY)) if each["kind"] != "FlinkDeployment"]
    file = tmp_path / "made.yaml"
    file.write_text(yaml.safe_dump_all(made), encoding="utf-8")
    validate = [str(tools() / "bin" / "kubernetes-validate"), "--strict", f"--kubernetes-version={KUBERNETES}"]
    assert complaints([*validate, str(file)]) == ""
