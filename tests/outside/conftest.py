"""Packages from outside of this tree, installed, and the command with them."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.outside.copied_family import write_copy
from tests.warm import warm_processes

Run = Callable[..., str]
#: The example of a kind of domain.
FAVOURITES = Path(__file__).parents[2] / "examples" / "favourites"


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example of a kind, all packages beside this file, and the copy of a family."""
    folder, uv = tmp_path_factory.mktemp("installed"), Path(sys.executable).with_name("uv")
    packages = [FAVOURITES, *(path.parent for path in Path(__file__).parent.glob("*/pyproject.toml"))]
    packages.append(write_copy(tmp_path_factory.mktemp("copied")))
    subprocess.run([uv, "pip", "install", "--quiet", "--no-deps", "--target", folder, *packages], check=True)
    return folder


@pytest.fixture(scope="session")
def environment(installed: Path) -> dict[str, str]:
    """The environment of a process that finds the packages."""
    return os.environ | {"PYTHONPATH": str(installed)}


@pytest.fixture(scope="session")
def commands(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with ``uldp``, whose processes have imported the project, and find the packages."""
    with warm_processes(tmp_path_factory.mktemp("warm"), environment) as folder:
        yield folder


@pytest.fixture
def uldp(commands: Path, environment: dict[str, str], tmp_path: Path) -> Run:
    """Run the command in an empty folder, and return what it prints."""

    def run(*arguments: str) -> str:
        command = [str(commands / "uldp"), *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
