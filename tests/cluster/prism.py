"""Prism, Beam's local runner in Go, built from the module that belongs to this version of Beam."""

from pathlib import Path

import apache_beam

from tests.downloads import installed

MODULE = "github.com/apache/beam/sdks/v2/go/cmd/prism"


def prism() -> Path:
    """Return the program."""
    return installed("prism", f"{MODULE}@v{apache_beam.__version__}")


def on_prism() -> list[str]:
    """Return the options of ``uldp`` that choose it."""
    return ["--runner=PrismRunner", f"--prism_location={prism()}"]
