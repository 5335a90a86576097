"""Trials of what is read and not installed: the site, the list of parts, the digests."""

import json
import re
import tarfile

from tests.release.trial import Trial

#: What a page loads by itself, when it is opened.
_LOADED = re.compile(r"""<(?:script|img|link[^>]*rel="?(?:stylesheet|icon)"?)[^>]*(?:src|href)="?([^"\s>]+)""")


def site(trial: Trial) -> str:
    """Unpack the site; each page has what it loads in the archive, and nothing from elsewhere."""
    archive = trial.artefact("uldp-stream-*-docs.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(trial.folder, filter="data")
    pages = sorted(trial.folder.rglob("*.html"))
    if trial.folder / "site" / "index.html" not in pages:
        raise trial.fail(archive.name, "has no site/index.html")
    for page in pages:
        for target in _LOADED.findall(page.read_text(encoding="utf-8")):
            path = target.partition("#")[0].partition("?")[0]
            if path.startswith("data:") or page.name == "404.html":
                continue
            if not (page.parent / path).is_file():
                raise trial.fail(archive.name, f"{page.relative_to(trial.folder)} loads {target}, which it lacks")
    return f"unpacked; {len(pages)} pages have all that they load"


def sbom(trial: Trial) -> str:
    """Read the list of parts: CycloneDX, of the version of the wheel, each part with a version."""
    found = trial.artefact("uldp-stream-*.cdx.json")
    version = trial.artefact("*.whl").name.split("-")[1]
    bom = json.loads(found.read_bytes())
    root, parts = bom["metadata"]["component"], bom["components"]
    if (bom["bomFormat"], root["name"], root["version"]) != ("CycloneDX", "uldp-stream", version):
        raise trial.fail(found.name, f"is not CycloneDX of uldp-stream {version}")
    if not parts or not all(each.get("version") for each in parts):
        raise trial.fail(found.name, "has no parts, or parts without a version")
    return f"CycloneDX {bom['specVersion']} of uldp-stream {version} with {len(parts)} parts"


def sums(trial: Trial) -> str:
    """Compare each digest with its file, and the files with those that have a digest."""
    path = trial.artefact("SHA256SUMS")
    trial.run("sha256sum", "--check", "--strict", "--quiet", path.name, cwd=trial.dist)
    named = {line.split(maxsplit=1)[1] for line in path.read_text(encoding="utf-8").splitlines()}
    there = {each.name for each in trial.dist.iterdir()} - {path.name, f"{path.name}.sig"}
    if named != there:
        raise trial.fail(path.name, f"names other files than there are: {sorted(named ^ there)}")
    return f"the digests of {len(named)} files"
