"""Prism, Beam's local runner in Go, built from the module that belongs to this version of Beam.

It is kept in ``build/cluster``.
"""

import os
import subprocess
from pathlib import Path

import apache_beam

from tests.downloads import CACHE, once

MODULE = "github.com/apache/beam/sdks/v2/go/cmd/prism"


@once
def prism() -> Path:
    """Return the program, built if it is not there."""
    folder = CACHE / f"prism-{apache_beam.__version__}"
    if not folder.exists():
        aside = CACHE / ".prism"
        environment = os.environ | {"GOBIN": str(aside)}
        subprocess.run(["go", "install", f"{MODULE}@v{apache_beam.__version__}"], env=environment, check=True)
        aside.rename(folder)
    return folder / "prism"


def on_prism() -> list[str]:
    """Return the options of ``uldp`` that choose it."""
    return ["--runner=PrismRunner", f"--prism_location={prism()}"]
