"""Trials fail where an artefact is wrong, and name it and the command."""

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.release import files, python
from tests.release.readme import README, first_spec
from tests.release.trial import Trial, TrialError

WHEEL = "uldp_stream-1.0-py3-none-any.whl"
PARTS = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.6",
    "metadata": {"component": {"name": "uldp-stream", "version": "1.0"}},
    "components": [{"name": "numpy", "version": "2.0"}],
}
PAGE = '<link rel="stylesheet" href="style.css"><script src="a.js?v=1"></script><img src="data:,x"></html>'
WHOLE = {"site/index.html": PAGE, "site/a.js": "", "site/style.css": ""}


def trial(name: str, folder: Path, **written: bytes) -> Trial:
    (folder / "dist").mkdir()
    (folder / "empty").mkdir()
    (folder / "dist" / WHEEL).touch()
    for file, content in written.items():
        (folder / "dist" / file.replace("__", ".")).write_bytes(content)
    return Trial(name, folder / "dist", folder / "empty")


def archived(content: Mapping[str, str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in content.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


def of_sums(folder: Path, digest: str) -> Trial:
    return trial("sums", folder, SHA256SUMS=f"{digest}  {WHEEL}\n".encode())


def of_parts(folder: Path, **changed: object) -> Trial:
    made = trial("sbom", folder)
    (made.dist / "uldp-stream-1.0.cdx.json").write_text(json.dumps(PARTS | changed), encoding="utf-8")
    return made


def of_site(folder: Path, content: Mapping[str, str]) -> Trial:
    made = trial("site", folder)
    (made.dist / "uldp-stream-1.0-docs.tar.gz").write_bytes(archived(content))
    return made


def test_what_is_right_passes(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("sums", "sbom", "site")]
    for folder in folders:
        folder.mkdir()
    assert files.sums(of_sums(folders[0], hashlib.sha256().hexdigest())) == "the digests of 1 files"
    assert files.sbom(of_parts(folders[1])) == "CycloneDX 1.6 of uldp-stream 1.0 with 1 parts"
    assert files.site(of_site(folders[2], WHOLE)) == "unpacked; 1 pages have all that they load"


@pytest.mark.parametrize(
    ("tried", "made", "error"),
    [
        (files.sums, lambda folder: of_sums(folder, "0" * 64), r"(?s)^sums: sha256sum --check .*SHA256SUMS\n.*FAILED"),
        (files.sums, lambda folder: trial("sums", folder, SHA256SUMS=b""), "^sums: "),
        (files.sums, lambda folder: trial("sums", folder), "^sums: .* has 0 files SHA256SUMS; one is needed"),
        (files.sbom, lambda folder: of_parts(folder, components=[]), "^sbom: .*cdx.json\nhas no parts"),
        (files.sbom, lambda folder: of_parts(folder, bomFormat="x"), "is not CycloneDX of uldp-stream 1.0"),
        (files.site, lambda folder: of_site(folder, {"site/x.html": ""}), "has no site/index.html"),
        (files.site, lambda folder: of_site(folder, {"site/index.html": PAGE}), "index.html loads style.css, which it"),
    ],
)
def test_what_is_wrong_is_named(
    tried: Callable[[Trial], str], made: Callable[[Path], Trial], error: str, tmp_path: Path
) -> None:
    with pytest.raises(TrialError, match=error):
        tried(made(tmp_path))


def test_the_first_spec_of_the_readme_is_read() -> None:
    written, commands = first_spec(README.read_text(encoding="utf-8"))
    assert [command.split()[1] for command in commands] == ["check", "simulate", "backfill", "show", "report"]
    assert f"--users {python.USERS} " in commands[1]
    assert written["survey.yaml"].startswith("collection: survey\n")
    with pytest.raises(ValueError, match="no block of yaml, csv or console"):
        first_spec("# uldp-stream\n")
