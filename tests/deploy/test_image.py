"""The image: its locks hold what the project asks for, and its recipe makes an environment that works."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.dockerfile import ARGUMENTS, DOCKERFILE, STAGES, Stage
from tests.deploy.tools import DEPLOY, ROOT, complaints, needs_downloads, tools

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
#: What pip and Docker leave to others: the user, and what is in images that are not made here.
ELSEWHERE = ("useradd ", "mvn ")
FOREIGN = {"beam", "launcher", "jars"}


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
        assert re.search(r":[\w.-]*\d+\.\d+[\w.-]*$", base), base
    assert ARGUMENTS["BEAM"].endswith(f":{locked('requirements.lock')['apache-beam'][0]}")
    assert "python:3.11." in ARGUMENTS["PYTHON"]
    assert "python3.11" in ARGUMENTS["BEAM"]


def test_pip_installs_nothing_that_is_not_pinned() -> None:
    commands = [value for stage in STAGES for instruction, value in stage.instructions if instruction == "RUN"]
    installs = [command for command in commands if "pip install" in command or "pip wheel" in command]
    assert len(installs) == 4
    assert all("--require-hashes" in command or "--no-deps" in command for command in installs)


@needs_downloads
def test_hadolint_finds_nothing() -> None:
    assert complaints([tools() / "bin" / "hadolint", DOCKERFILE]) == ""


@dataclass
class Image:
    """The stages of Python, made by their own commands in a folder and an environment each, without an engine."""

    folder: Path

    def build(self, stage: Stage) -> None:
        root = self.root(stage.name)
        venv.create(root / "python", with_pip=True)
        here = root
        for instruction, value in stage.instructions:
            match instruction:
                case "WORKDIR":
                    here = root / value.lstrip("/")
                    here.mkdir(parents=True, exist_ok=True)
                case "COPY":
                    self._copy(shlex.split(value), root, here)
                case "RUN" if not value.startswith(ELSEWHERE):
                    self.run(stage.name, "sh", "-euc", value, cwd=here)

    def root(self, stage: str) -> Path:
        return self.folder / stage

    def run(self, stage: str, *command: str, cwd: Path | None = None) -> str:
        """Run a command as in the image; its paths are those of this machine."""
        path = f"{self.root(stage) / 'python' / 'bin'}:/usr/bin:/bin"
        variables = {"PATH": path, "HOME": str(self.folder), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        done = subprocess.run(
            command,
            env=kept | variables,
            cwd=cwd or self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _copy(self, words: list[str], root: Path, here: Path) -> None:
        origin = ROOT
        if words[0].startswith("--from="):
            source = words.pop(0).removeprefix("--from=")
            if source in FOREIGN:
                return
            origin = self.root(source)
        *sources, to = words
        target = root / to.lstrip("/") if to.startswith("/") else here / to
        for source in sources:
            there = origin / source.lstrip("/")
            into = target if there.is_dir() else target.parent
            into.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-r", f"{there}/." if there.is_dir() else str(there), str(target)], check=True)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the lock is for Python 3.11")
    built = Image(tmp_path_factory.mktemp("image"))
    for stage in STAGES:
        if stage.name in ("wheel", "worker"):
            built.build(stage)
    return built


@needs_downloads
def test_the_recipe_makes_an_environment_that_works(image: Image) -> None:
    assert "uldp simulate" in image.run("worker", "uldp", "--help")
    specs = image.root("worker") / "specs"
    assert "manhattan-checkins version 1" in image.run(
        "worker", "uldp", "check", str(specs / "manhattan" / "spec.yaml")
    )
    assert "--watermark-delay" in image.run(
        "worker", "python", str(DEPLOY / "dataflow" / "main.py"), "--help"
    )
    image.run("worker", "python", "-c", "import confluent_kafka, google.cloud.bigquery, google.cloud.pubsub_v1")
