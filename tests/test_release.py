"""A release has one version, whichever package says it."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SAY_IT = ("pyproject.toml", "clients/typescript/package.json", "clients/kotlin/pom.xml", "CHANGELOG.md", "CITATION.cff")


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", folder / "deploy" / "release.sh", "--check"], capture_output=True, text=True)


def test_all_packages_have_one_version() -> None:
    done = check(ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("changed", SAY_IT)
def test_another_version_is_named(changed: str, tmp_path: Path) -> None:
    for name in (*SAY_IT, "deploy/release.sh"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    text = (tmp_path / changed).read_text(encoding="utf-8")
    (tmp_path / changed).write_text(text.replace("0.1.0", "0.1.1"), encoding="utf-8")
    done = check(tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
