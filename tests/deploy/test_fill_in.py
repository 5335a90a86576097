"""Scripts of a release: each package says who publishes it, the image's bases are pinned, and a bundle is signed."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from deploy.fill_in import FILES, Publisher, citation, package_json, pom, pyproject, readme
from tests.deploy.dockerfile import ARGUMENTS, DOCKERFILE, parse
from tests.deploy.tools import DEPLOY
from tests.downloads import ROOT

URL = "https://forge.example/them/uldp-stream"
HOSTILE = 'O"Hara & {Söns} 🜁: #1 \\ '
SET = {"AUTHORS": f"Ada Lovelace <ada@example.org>; {HOSTILE}", "URL": URL, "GROUP": "org.example"}
BY = Publisher.of(SET)


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_variables_are_read_and_open_ones_are_named() -> None:
    assert BY.authors == (("Ada Lovelace", "ada@example.org"), (HOSTILE.strip(), ""))
    assert BY.open() == []
    assert Publisher.of({"URL": URL, "AUTHORS": " ; "}).open() == ["AUTHORS", "GROUP"]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("AUTHORS", "Ada\nLovelace"),
        ("URL", "http://forge.example/x"),
        ("GROUP", "example"),
        ("GROUP", "org.example</groupId>"),
    ],
)
def test_a_value_of_another_form_is_refused_by_the_name_of_its_variable(variable: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"^{variable} (is|has) .*; write "):
        Publisher.of({variable: value})


def test_the_python_package_says_who_publishes_it() -> None:
    project = tomllib.loads(pyproject(text("pyproject.toml"), BY))["project"]
    assert project["authors"] == [{"name": "Ada Lovelace", "email": "ada@example.org"}, {"name": HOSTILE.strip()}]
    assert project["urls"] == {"Repository": URL}


def test_the_package_for_npm_says_who_publishes_it() -> None:
    package = json.loads(package_json(text("clients/typescript/package.json"), BY))
    assert package["author"] == "Ada Lovelace <ada@example.org>"
    assert package["contributors"] == [HOSTILE.strip()]
    assert (package["homepage"], package["repository"]["url"]) == (URL, f"git+{URL}.git")


def test_the_pom_has_what_maven_central_asks_for() -> None:
    root = ElementTree.fromstring(pom(text("clients/kotlin/pom.xml"), BY))
    asked = ("name", "description", "url", "licenses/{*}license/{*}url", "scm/{*}url", "scm/{*}connection")
    assert all(root.findtext(f"{{*}}{each}") for each in asked)
    assert root.findtext("{*}groupId") == "org.example"
    assert [each.findtext("{*}name") for each in root.iterfind(".//{*}developer")] == ["Ada Lovelace", HOSTILE.strip()]


def test_the_citation_says_who_publishes_it() -> None:
    cited = yaml.safe_load(citation(text("CITATION.cff"), BY))
    assert cited["authors"] == [{"name": "Ada Lovelace"}, {"name": HOSTILE.strip()}]
    assert cited["repository-code"] == URL


@pytest.mark.parametrize("name", FILES)
def test_what_is_open_stays_as_it_is(name: str) -> None:
    before, after = text(name), FILES[name](text(name), Publisher())
    assert json.loads(before) == json.loads(after) if name.endswith(".json") else before == after


def test_nobody_can_own_the_group_that_is_not_filled_in() -> None:
    root = ElementTree.fromstring(text("clients/kotlin/pom.xml"))
    assert (root.findtext("{*}groupId") or "").split(".")[0] == "invalid"  # RFC 2606


def test_a_file_that_has_changed_so_that_nothing_is_found_is_refused() -> None:
    with pytest.raises(ValueError, match=r"has no '- name: The authors of uldp-stream', or more than one"):
        citation("license: MIT\n", BY)


def test_no_link_of_the_readme_is_relative_on_another_page() -> None:
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", readme(text("README.md"), BY))
    assert len(links) > 20
    for picture, target in links:
        assert target.startswith(f"{URL}/{'raw' if picture else 'blob'}/HEAD/")
        assert (ROOT / target.partition("/HEAD/")[2].partition("#")[0]).exists()


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


SCRIPT = ROOT / "deploy" / "bundle.sh"
NAMES = [f"uldp-client-1.0{ending}" for ending in (".pom", ".jar", "-sources.jar", "-javadoc.jar")]

needs_gpg = pytest.mark.skipif(shutil.which("gpg") is None, reason="GnuPG is not installed")


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


@needs_gpg
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


@needs_gpg
@pytest.mark.parametrize(
    ("changed", "error"), [("TRIAL", "is a trial: changed"), ("uldp-client-1.0.jar", "uldp-client-1.0.jar: FAILED")]
)
def test_a_trial_or_a_changed_file_is_not_packed(changed: str, error: str, dist: Path, keys: dict[str, str]) -> None:
    (dist / changed).write_text("changed", encoding="utf-8")
    done = bundle(dist, keys)
    assert done.returncode == 1
    assert error in done.stdout + done.stderr
    assert not list(dist.glob("*.zip"))
