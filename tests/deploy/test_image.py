"""The image: locks hold what the project asks for, the recipe makes an environment that works, its list names all."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.dockerfile import ARGUMENTS, DOCKERFILE, STAGES, Image
from tests.deploy.tools import DEPLOY, complaints, needs_downloads, tools
from tests.downloads import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def locked(name: str) -> dict[str, tuple[str, list[str]]]:
    """Return version and hashes of each distribution of a lock."""
    text = re.sub(r"\\\n", " ", (DEPLOY / "image" / name).read_text(encoding="utf-8"))
    rows = [line.split() for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    pinned = [re.fullmatch(r"([\w.-]+)==([\w.]+)", row[0]) for row in rows]
    assert all(pinned), "a lock pins each version with =="
    return {match[1]: (match[2], row[1:]) for match, row in zip(pinned, rows, strict=True) if match}


def wanted(lock: str) -> list[str]:
    if lock == "build.lock":
        requires: list[str] = PROJECT["build-system"]["requires"]
        return requires
    project = PROJECT["project"]
    return [
        *project["dependencies"],
        *project["optional-dependencies"]["beam"],
        *project["optional-dependencies"]["kafka"],
        *project["optional-dependencies"]["gcp"],
    ]


@pytest.mark.parametrize("lock", ["requirements.lock", "build.lock"])
def test_a_lock_holds_what_the_project_asks_for(lock: str) -> None:
    versions = {name: version for name, (version, _) in locked(lock).items()}
    for requirement in map(Requirement, wanted(lock)):
        assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)]), requirement


@pytest.mark.parametrize("lock", ["requirements.lock", "build.lock"])
def test_a_lock_pins_by_hashes(lock: str) -> None:
    for name, (_, hashes) in locked(lock).items():
        assert hashes, name
        assert all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", one) for one in hashes), name


def test_bases_are_pinned_and_fit_the_lock() -> None:
    named = {"worker", ARGUMENTS["LAUNCHER"]}
    for base in {stage.base for stage in STAGES} - named:
        assert re.search(r":[\w.-]*\d+\.\d+[\w.-]*(@sha256:[0-9a-f]{64})?$", base), base
    assert ARGUMENTS["BEAM"].partition("@")[0].endswith(f":{locked('requirements.lock')['apache-beam'][0]}")
    assert "python:3.11." in ARGUMENTS["PYTHON"]
    assert "python3.11" in ARGUMENTS["BEAM"]


def test_pip_installs_nothing_that_is_not_pinned() -> None:
    commands = [value for stage in STAGES for instruction, value in stage.instructions if instruction == "RUN"]
    installs = [command for command in commands if "pip install" in command or "pip wheel" in command]
    assert len(installs) == 4
    assert all("--no-deps" in command for command in installs)
    locks = [command for command in installs if command.endswith(".lock")]
    assert len(locks) == 2
    assert all("--require-hashes" in command for command in locks)


@pytest.mark.nightly
@needs_downloads
def test_hadolint_finds_nothing() -> None:
    assert complaints([tools() / "bin" / "hadolint", DOCKERFILE]) == ""


@needs_downloads
@pytest.mark.nightly
def test_the_recipe_makes_an_environment_that_works(image: Image) -> None:
    assert "uldp simulate" in image.run("uldp", "--help")
    assert "manhattan-checkins version 1" in image.run("uldp", "check", str(image.path("/specs/manhattan/spec.yaml")))
    assert "--watermark-delay" in image.run("python", str(DEPLOY / "dataflow" / "main.py"), "--help")
    image.run("python", "-c", "import confluent_kafka, google.cloud.bigquery, google.cloud.pubsub_v1")


def test_the_list_of_jars_is_of_the_poms_versions() -> None:
    lines = (DEPLOY / "flink" / "jars.sha256").read_text(encoding="utf-8").splitlines()
    names = [re.fullmatch(r"[0-9a-f]{64}  (\S+\.jar)", line)[1] for line in lines]  # type: ignore[index]
    assert names == sorted(set(names))
    pom = (DEPLOY / "flink" / "pom.xml").read_text(encoding="utf-8")
    (beam,) = set(
        re.findall(r"<artifactId>(beam-runners-flink-[\d.]+)</artifactId>\s*<version>([\d.]+)</version>", pom)
    )
    assert "-".join(beam) + ".jar" in names


@needs_downloads
@pytest.mark.nightly
def test_the_jars_are_those_of_the_list() -> None:
    from tests.cluster.flink import job_server_jars

    jars = sorted(path for path in job_server_jars().glob("*.jar") if path.name != "flink-job-server.jar")
    found = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in jars]
    assert found == (DEPLOY / "flink" / "jars.sha256").read_text(encoding="utf-8").splitlines()


def test_a_builder_without_a_daemon_knows_each_instruction() -> None:
    """Such as Buildah and Kaniko: no mounts, no here-documents, and no syntax that BuildKit has to fetch."""
    text = DOCKERFILE.read_text(encoding="utf-8")
    assert not re.search(r"^#\s*(syntax|escape|check)\s*=", text, flags=re.MULTILINE | re.IGNORECASE)
    used = {instruction for stage in STAGES for instruction, _ in stage.instructions}
    assert used <= {"RUN", "COPY", "WORKDIR", "ENV", "USER", "ENTRYPOINT"}
    for stage in STAGES:
        for instruction, value in stage.instructions:
            options = re.findall(r"^(--[a-z-]+)", value)
            assert options in ([], ["--from"]) or instruction == "ENTRYPOINT", value
            assert "<<" not in value


@needs_downloads
def test_the_sbom_holds_the_lock(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    for name in ("Makefile", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "deploy" / "image", tmp_path / "deploy" / "image")
    ready = tmp_path / ".ready"
    ready.touch()
    make = ["make", "--silent", f"BIN={Path(sys.executable).parent}", f"READY={ready}", "sbom"]
    files = []
    for _ in range(2):
        subprocess.run(make, cwd=tmp_path, check=True, capture_output=True, timeout=300)
        files.append((tmp_path / "build" / "sbom.json").read_bytes())
    assert files[0] == files[1]
    bom = json.loads(files[0])
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.6")
    root = bom["metadata"]["component"]
    assert (root["name"], root["version"]) == ("uldp-stream", PROJECT["project"]["version"])
    found = {
        each["name"]: (
            each["version"],
            sorted(
                f"--hash=sha256:{one['content']}"
                for reference in each["externalReferences"]
                for one in reference["hashes"]
            ),
        )
        for each in bom["components"]
    }
    assert found == {name: (version, sorted(hashes)) for name, (version, hashes) in locked("requirements.lock").items()}
