"""All of it on one machine: what compose starts fits together, and fits what the project says elsewhere."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from apache_beam.options.pipeline_options import PipelineOptions

from tests.deploy.dockerfile import STAGES, USER
from tests.deploy.tools import DEPLOY, complaints, needs_downloads, site_packages, tools
from uldp.pipelines.cli import cli
from uldp.transforms.io.endpoints import parse_endpoint
from uldp.transforms.io.kafka.endpoint import KafkaEndpoint

FILE = DEPLOY / "compose" / "compose.yaml"
PROJECT: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = PROJECT["services"]
TASK_MANAGERS = [name for name, service in SERVICES.items() if service.get("command") == "taskmanager"]
#: What is another here than in deploy/flink.
FOLDERS = {"state.checkpoints.dir", "state.savepoints.dir"}
#: Our worker pool, which listens on the loopback interface, and its port.
POOL, POOL_PORT = ["python", "-m", "uldp.pipelines.jobs.pool"], 50000


def flink_config() -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load((DEPLOY / "flink" / "config.yaml").read_text(encoding="utf-8"))
    return config


def options(command: list[str]) -> dict[str, str]:
    return dict(re.fullmatch("--([^=]+)=(.*)", option).groups() for option in command)  # type: ignore[union-attr, misc]


JOB = options(SERVICES["job"]["command"][1:])
JOB_SERVER = options(SERVICES["jobserver"]["command"])


@pytest.mark.parametrize("name", ["jobmanager", *TASK_MANAGERS])
def test_flink_is_configured_as_in_deploy_flink(name: str) -> None:
    properties = SERVICES[name]["environment"]["FLINK_PROPERTIES"]
    assert all(re.fullmatch(r"[\w.-]+: \S.*", line) and "#" not in line for line in properties.splitlines())
    config, expected = yaml.safe_load(properties), flink_config()
    assert config.keys() == expected.keys()
    assert {key: config[key] for key in config.keys() - FOLDERS} == {
        key: expected[key] for key in config.keys() - FOLDERS
    }
    assert all(config[key].startswith("file:///data/") for key in FOLDERS)


def test_each_task_manager_has_a_pool_of_its_own() -> None:
    pools = [service for service in SERVICES.values() if service.get("entrypoint") == POOL]
    assert [pool["network_mode"] for pool in pools] == [f"service:{name}" for name in TASK_MANAGERS]
    assert all(options(pool["command"])["service_port"] == str(POOL_PORT) for pool in pools)
    assert int(JOB["parallelism"]) == len(TASK_MANAGERS) * flink_config()["taskmanager.numberOfTaskSlots"]
    assert JOB["environment_config"] == f"localhost:{POOL_PORT}"


def test_the_job_finds_its_server() -> None:
    assert JOB["job_endpoint"] == f"jobserver:{JOB_SERVER['job-port']}"
    assert JOB["artifact_endpoint"] == f"jobserver:{JOB_SERVER['artifact-port']}"
    assert JOB_SERVER["flink-master"] == "jobmanager:8081"
    assert JOB_SERVER["artifacts-dir"].startswith("/data/")
    assert all("data:/data" in SERVICES[name]["volumes"] for name in ("jobserver", *TASK_MANAGERS))


def test_the_job_has_options_that_there_are() -> None:
    own = {option.opts[0].removeprefix("--") for option in cli.commands[SERVICES["job"]["command"][0]].params}
    beam = PipelineOptions([f"--{name}={value}" for name, value in JOB.items() if name not in own])
    known = beam.get_all_options(retain_unknown_options=False)
    assert beam.get_all_options(retain_unknown_options=True).keys() == known.keys()


def test_topics_of_the_job_are_made() -> None:
    script = (DEPLOY / "topics" / "kafka.sh").read_text(encoding="utf-8")
    made = set(re.findall(r"^topic (\w+) \d", script, flags=re.MULTILINE))
    topics = [
        parse_endpoint(JOB["from"], None),
        *(parse_endpoint(JOB[name], None) for name in ("estimates-to", "rejected-to")),
    ]
    for topic in topics:
        assert isinstance(topic, KafkaEndpoint)
        assert topic.topic.servers == SERVICES["topics"]["environment"]["BOOTSTRAP"]
        assert topic.topic.name in made
        assert SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"] == f"CLIENT://{topic.topic.servers}"


def test_no_port_is_open_to_other_machines() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_what_is_mounted_and_built_is_there() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            source, _ = volume.split(":", 1)
            assert source in PROJECT["volumes"] or (FILE.parent / source).exists(), volume
        for config in service.get("configs", []):
            assert config["source"] in PROJECT["configs"]
        if "build" in service:
            assert service["build"]["target"] in {stage.name for stage in STAGES}
            assert (FILE.parent / service["build"]["context"] / service["build"]["dockerfile"]).exists()
        else:
            assert re.search(r":v?\d+\.\d+\.\d+(-java17)?$", service["image"])


def test_who_writes_may_write() -> None:
    owner = SERVICES["data"]["entrypoint"]
    assert {f"--owner={USER}", f"--group={USER}", "/data"} <= set(owner)
    assert all(service["user"] == str(USER) for service in SERVICES.values() if service["image"] == "uldp-stream")


def test_prometheus_asks_each_process_of_flink() -> None:
    (group,) = yaml.safe_load(PROJECT["configs"]["targets"]["content"])
    first = flink_config()["metrics.reporter.prom.port"].split("-")[0]
    assert group == {"targets": [f"{name}:{first}" for name in ("jobmanager", *TASK_MANAGERS)]}
    prometheus = yaml.safe_load((DEPLOY / "monitoring" / "prometheus.yaml").read_text(encoding="utf-8"))
    mounted = {volume.split(":")[1] for volume in SERVICES["prometheus"]["volumes"]}
    mounted |= {config["target"] for config in SERVICES["prometheus"]["configs"]}
    (scrape,) = prometheus["scrape_configs"]
    wanted = [*prometheus["rule_files"], *scrape["file_sd_configs"][0]["files"], "prometheus.yaml"]
    assert mounted == {f"/etc/prometheus/{name}" for name in wanted}


@needs_downloads
@pytest.mark.parametrize("profile", [[], ["--profile=monitoring"]], ids=["alone", "monitored"])
def test_compose_takes_it(profile: list[str]) -> None:
    compose = site_packages(tools()) / "compose" / "docker-compose"
    assert complaints([compose, f"--file={FILE}", *profile, "config", "--quiet"]) == ""


@needs_downloads
def test_kafka_takes_its_settings(tmp_path: Path) -> None:
    from tests.cluster.kafka import CLUSTER_ID, java

    environment: dict[str, str] = SERVICES["kafka"]["environment"]
    settings = {name.removeprefix("KAFKA_").replace("_", ".").lower(): value for name, value in environment.items()}
    settings["log.dirs"] = str(tmp_path / "data")
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
    command = java("kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config", str(file))
    assert complaints(command) == ""
    file.write_text(file.read_text("utf-8").replace("CLIENT://kafka", "OTHER://kafka"), encoding="utf-8")
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run(command, check=True, capture_output=True)


@needs_downloads
def test_yamllint_finds_nothing() -> None:
    # A file that is appended to another begins with an empty line.
    rules = "document-start: disable, line-length: disable, braces: disable, empty-lines: {max-start: 1}"
    config = f"--config-data={{extends: default, rules: {{{rules}}}}}"
    assert complaints([tools() / "bin" / "yamllint", "--strict", config, DEPLOY]) == ""
