"""The image's recipe: its stages and their instructions, and what they make where there is no engine."""

import os
import re
import shlex
import shutil
import subprocess
import venv
from dataclasses import dataclass, field
from pathlib import Path

from tests.deploy.tools import DEPLOY
from tests.downloads import ROOT

DOCKERFILE = DEPLOY / "image" / "Dockerfile"
#: What an engine alone can do, and stages that are of others.
ELSEWHERE = ("useradd ",)
FOREIGN = {"beam"}


@dataclass
class Stage:
    """A part of a Dockerfile that begins with FROM: its base, and instructions with their arguments."""

    base: str
    name: str
    instructions: list[tuple[str, str]] = field(default_factory=list)


def parse(text: str) -> tuple[dict[str, str], list[Stage]]:
    """Return the arguments before the first stage with their values, and the stages, variables filled in."""
    arguments: dict[str, str] = {}
    stages: list[Stage] = []
    for line in re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines():
        if not line:
            continue
        instruction, value = line.split(maxsplit=1)
        value = re.sub(r"\$\{(\w+)\}", lambda match: arguments[match[1]], value)
        if instruction == "FROM":
            base, name = re.fullmatch(r"(\S+) AS (\S+)", value).groups()  # type: ignore[union-attr]
            stages.append(Stage(base, name))
        elif instruction == "ARG":
            arguments.update([value.split("=", 1)])  # type: ignore[list-item]
        else:
            stages[-1].instructions.append((instruction, value))
    return arguments, stages


ARGUMENTS, STAGES = parse(DOCKERFILE.read_text(encoding="utf-8"))
(_USER,) = re.findall(r"RUN useradd --uid (\d+) ", DOCKERFILE.read_text(encoding="utf-8"))
#: Whom the image can run as. Beam's entrypoint fails as somebody whom the system does not know.
USER = int(_USER)


@dataclass
class Image:
    """The stages that have Python, made by their own commands in a folder and an environment each, without an engine.

    Attributes:
        folder: What a path of an image is below, in a folder for each stage.
    """

    folder: Path
    _environment: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for stage in STAGES:
            if stage.name in ("wheel", "worker"):
                self._make(stage)

    def path(self, path: str, stage: str = "worker") -> Path:
        """Return where a file of an image is here."""
        return self.folder / stage / path.lstrip("/")

    def environment(self, stage: str = "worker") -> dict[str, str]:
        """Return what a process of an image sees."""
        path = f"{self.path('python/bin', stage)}:/usr/bin:/bin"
        pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        return {
            **pip,
            **self._environment,
            "PATH": path,
            "HOME": str(self.folder),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }

    def run(self, *command: str, stage: str = "worker", cwd: Path | None = None) -> str:
        """Run a command as in an image, and return what it prints."""
        done = subprocess.run(
            command,
            env=self.environment(stage),
            cwd=cwd or self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _make(self, stage: Stage) -> None:
        venv.create(self.path("python", stage.name), with_pip=True)
        here = self.path("/", stage.name)
        for instruction, value in stage.instructions:
            match instruction:
                case "WORKDIR":
                    here = self.path(value, stage.name)
                    here.mkdir(parents=True, exist_ok=True)
                case "COPY":
                    self._copy(shlex.split(value), stage.name, here)
                case "ENV":
                    self._environment.update([value.split("=", 1)])  # type: ignore[list-item]
                case "RUN" if not value.startswith(ELSEWHERE):
                    self.run("sh", "-euc", value, stage=stage.name, cwd=here)

    def _copy(self, words: list[str], stage: str, here: Path) -> None:
        origin = ROOT
        if words[0].startswith("--from="):
            source = words.pop(0).removeprefix("--from=")
            if source in FOREIGN:
                return
            origin = self.path("/", source)
        *sources, to = words
        target = self.path(to, stage) if to.startswith("/") else here / to
        for source in sources:
            there = origin / source.lstrip("/")
            if there.is_dir():
                shutil.copytree(there, target, dirs_exist_ok=True)
            else:
                shutil.copy(there, target)
