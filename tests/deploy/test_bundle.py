"""The bundle for Maven Central: signed by a key of the test, in the folders that Central asks for."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.downloads import ROOT

SCRIPT = ROOT / "deploy" / "bundle.sh"
NAMES = [f"uldp-client-1.0{ending}" for ending in (".pom", ".jar", "-sources.jar", "-javadoc.jar")]

pytestmark = pytest.mark.skipif(shutil.which("gpg") is None, reason="GnuPG is not installed")


@pytest.fixture(scope="module")
def keys() -> Iterator[dict[str, str]]:
    """The environment of somebody who has a key; its folder has a short name, for a socket is in it."""
    with tempfile.TemporaryDirectory(prefix="gpg", dir="/tmp") as folder:
        environment = os.environ | {"GNUPGHOME": folder}
        make = ["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "ada@example.org"]
        subprocess.run(make, env=environment, check=True, capture_output=True)
        yield environment
        subprocess.run(["gpgconf", "--kill", "all"], env=environment, check=True)


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name).write_text(f"{name}\n  <groupId>org.example</groupId>\n", encoding="utf-8")
    sums = [f"{hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()}  {name}\n" for name in NAMES]
    (tmp_path / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    return tmp_path


def bundle(dist: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", SCRIPT, dist], env=environment, capture_output=True, text=True)


def test_each_file_is_signed_and_has_its_digests(dist: Path, keys: dict[str, str]) -> None:
    done = bundle(dist, keys)
    packed = dist / "uldp-client-1.0-bundle.zip"
    assert (done.returncode, done.stdout) == (0, f"{packed}: org.example:uldp-client:1.0\n"), done.stderr
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(dist / "unpacked")
    folder = dist / "unpacked" / "org" / "example" / "uldp-client" / "1.0"
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        f"{name}{ending}" for name in NAMES for ending in ("", ".asc", ".md5", ".sha1")
    )
    for name in NAMES:
        subprocess.run(
            ["gpg", "--verify", f"{folder / name}.asc", folder / name], env=keys, check=True, capture_output=True
        )
        content = (dist / name).read_bytes()
        for digest in ("md5", "sha1"):
            assert (folder / f"{name}.{digest}").read_text().strip() == hashlib.new(digest, content).hexdigest()


@pytest.mark.parametrize(
    ("changed", "error"), [("TRIAL", "is a trial: changed"), ("uldp-client-1.0.jar", "uldp-client-1.0.jar: FAILED")]
)
def test_a_trial_or_a_changed_file_is_not_packed(changed: str, error: str, dist: Path, keys: dict[str, str]) -> None:
    (dist / changed).write_text("changed", encoding="utf-8")
    done = bundle(dist, keys)
    assert done.returncode == 1
    assert error in done.stdout + done.stderr
    assert not list(dist.glob("*.zip"))
