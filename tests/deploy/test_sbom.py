"""The list of what the image installs names each distribution of the lock, with its version and its hashes."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.deploy.test_image import PROJECT, locked
from tests.deploy.tools import needs_downloads
from tests.downloads import ROOT


@needs_downloads
def test_the_sbom_holds_the_lock(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    for name in ("Makefile", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "deploy" / "image", tmp_path / "deploy" / "image")
    ready = tmp_path / ".ready"
    ready.touch()
    make = ["make", "--silent", f"BIN={Path(sys.executable).parent}", f"READY={ready}", "sbom"]
    files = []
    for _ in range(2):
        subprocess.run(make, cwd=tmp_path, check=True, capture_output=True, timeout=300)
        files.append((tmp_path / "build" / "sbom.json").read_bytes())
    assert files[0] == files[1]
    bom = json.loads(files[0])
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.6")
    root = bom["metadata"]["component"]
    assert (root["name"], root["version"]) == ("uldp-stream", PROJECT["project"]["version"])
    found = {
        each["name"]: (
            each["version"],
            sorted(
                f"--hash=sha256:{one['content']}"
                for reference in each["externalReferences"]
                for one in reference["hashes"]
            ),
        )
        for each in bom["components"]
    }
    assert found == {name: (version, sorted(hashes)) for name, (version, hashes) in locked("requirements.lock").items()}
