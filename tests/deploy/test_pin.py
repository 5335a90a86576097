"""The script that pins the image's bases, with a program in place of Docker: no registry is asked."""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.dockerfile import ARGUMENTS, DOCKERFILE, parse
from tests.deploy.tools import DEPLOY

#: Those with a tag: without its launcher, the image has no base for it.
BASES = {name: value.partition("@")[0] for name, value in ARGUMENTS.items() if ":" in value}
#: Answers with the digest of the name that it is asked for, and of a word that the test chooses.
DOCKER = """#!/bin/sh
[ "$1 $2 $3 $4" = "buildx imagetools inspect --format" ] && [ "$5" = "{{.Manifest.Digest}}" ] || exit 64
case "$5$6" in *"$MISSING"*) echo "ERROR: $6: not found" >&2; exit 1 ;; esac
printf 'sha256:%s\\n' "$(printf '%s' "$6$WORD" | sha256sum | cut -d' ' -f1)"
"""


def digest(base: str, word: str) -> str:
    return f"sha256:{hashlib.sha256(f'{base}{word}'.encode()).hexdigest()}"


@pytest.fixture
def dockerfile(tmp_path: Path) -> Path:
    docker = tmp_path / "docker"
    docker.write_text(DOCKER, encoding="utf-8")
    docker.chmod(0o755)
    return Path(shutil.copy(DOCKERFILE, tmp_path / "Dockerfile"))


def pin(dockerfile: Path, word: str, missing: str = "none of them") -> subprocess.CompletedProcess[str]:
    path = f"{dockerfile.parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "WORD": word, "MISSING": missing}
    command = [DEPLOY / "image" / "pin.sh", dockerfile]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


def test_each_base_gets_its_digest_and_nothing_else_changes(dockerfile: Path) -> None:
    for word in ("", " of a newer image"):
        done = pin(dockerfile, word)
        assert (done.returncode, done.stderr) == (0, "")
        arguments, _ = parse(dockerfile.read_text(encoding="utf-8"))
        pinned = {name: f"{base}@{digest(base, word)}" for name, base in BASES.items()}
        assert arguments == ARGUMENTS | pinned
        assert done.stdout.split() == list(pinned.values())
    unpinned = re.sub(r"@sha256:[0-9a-f]{64}", "", dockerfile.read_text(encoding="utf-8"))
    assert unpinned == re.sub(r"@sha256:[0-9a-f]{64}", "", DOCKERFILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("base", BASES.values())
def test_if_one_is_missing_nothing_is_pinned(base: str, dockerfile: Path) -> None:
    done = pin(dockerfile, "", missing=base)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"error: {base}: its registry gives no digest; nothing is pinned"
    assert dockerfile.read_bytes() == DOCKERFILE.read_bytes()
