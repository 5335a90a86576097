"""A release has one version and one date, whichever file says it, and a page from which a person makes it."""

import re
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


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    for name in (*SAY_IT, "deploy/release.sh"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("changed", SAY_IT)
def test_another_version_is_named(changed: str, copied: Path) -> None:
    text = (copied / changed).read_text(encoding="utf-8")
    (copied / changed).write_text(text.replace("0.1.0", "0.1.1"), encoding="utf-8")
    done = check(copied)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")


@pytest.mark.parametrize(
    ("cited", "error"),
    [
        ("2026-12-24", ""),
        ("2026-12-23", "error: CHANGELOG.md dates 0.1.0 '2026-12-24', and CITATION.cff '2026-12-23'; write one date"),
        ("", "error: CHANGELOG.md dates 0.1.0 '2026-12-24', and CITATION.cff 'unreleased'; write one date"),
    ],
)
def test_changelog_and_citation_have_one_date(cited: str, error: str, copied: Path) -> None:
    for name, old, new in (
        ("CHANGELOG.md", "## 0.1.0 - unreleased", "## 0.1.0 - 2026-12-24"),
        ("CITATION.cff", "version: 0.1.0\n", "version: 0.1.0\n" + (f"date-released: {cited}\n" if cited else "")),
    ):
        text = (copied / name).read_text(encoding="utf-8")
        assert old in text
        (copied / name).write_text(text.replace(old, new), encoding="utf-8")
    done = check(copied)
    assert (done.returncode, done.stderr.partition(", as ")[0].strip()) == (bool(error), error)


def test_the_page_has_twelve_steps_and_names_what_is_there() -> None:
    page = (ROOT / "deploy" / "releasing.md").read_text(encoding="utf-8")
    steps = re.split(r"^(\d+)\. ", page, flags=re.MULTILINE)[1:]
    assert [int(number) for number in steps[::2]] == [*range(1, 13)]
    script = "".join((ROOT / "deploy" / name).read_text(encoding="utf-8") for name in ("release.sh", "fill_in.py"))
    read = set(re.findall(r"\b(?:AUTHORS|URL|GROUP|CI_PASSED|KEY)\b", script))
    assert read <= set(re.findall(r"\b[A-Z_]{3,}\b", page))
    for name in re.findall(r"\bdeploy/[\w/.]+\.\w+", page):
        assert (ROOT / name).is_file(), name
    host = r"https?://(?!HOST/)|\b\w+\.(?:org|com|io)\b"
    assert not re.search(host, page), "name no host of a registry"
