"""Packages from outside of this tree, installed, and the command with them."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., str]


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all packages beside this file."""
    folder, uv = tmp_path_factory.mktemp("installed"), Path(sys.executable).with_name("uv")
    packages = [path.parent for path in Path(__file__).parent.glob("*/pyproject.toml")]
    subprocess.run([uv, "pip", "install", "--quiet", "--no-deps", "--target", folder, *packages], check=True)
    return folder


@pytest.fixture
def uldp(installed: Path, tmp_path: Path) -> Run:
    """Run the command in an empty folder, and return what it prints."""

    def run(*arguments: str) -> str:
        command = [str(Path(sys.executable).with_name("uldp")), *arguments]
        environment = os.environ | {"PYTHONPATH": str(installed)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
