"""axe-core, which finds what readers with a keyboard, a screen reader or weak eyes cannot use."""

import shutil
import subprocess
import tarfile
from pathlib import Path

from tests.browser.chromium import Chromium
from tests.downloads import kept

_VERSION = "4.14.1"


def violations(browser: Chromium) -> list[str]:
    """Return the rules that the open page violates, each with the elements, by all rules but experimental ones."""
    browser.run(_source())
    script = "axe.run().then(r => r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.target.join(' ')).join(', ')))"
    found: list[str] = browser.run(script)
    return found


def _source() -> str:
    return (kept("axe", _VERSION, _download) / "axe.min.js").read_text(encoding="utf-8") + ";undefined"


def _download(folder: Path) -> None:
    npm = shutil.which("npm")
    assert npm is not None
    subprocess.run([npm, "pack", "--silent", f"axe-core@{_VERSION}"], cwd=folder, check=True, capture_output=True)
    with tarfile.open(folder / f"axe-core-{_VERSION}.tgz") as archive, (folder / "axe.min.js").open("wb") as target:
        packed = archive.extractfile("package/axe.min.js")
        assert packed is not None
        shutil.copyfileobj(packed, target)
