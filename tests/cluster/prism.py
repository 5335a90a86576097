"""Prism, Beam's local runner in Go, built from the module that belongs to this version of Beam."""

from dataclasses import dataclass
from pathlib import Path

import apache_beam

from tests.cluster.daemons import Daemon, Server
from tests.downloads import installed

MODULE = "github.com/apache/beam/sdks/v2/go/cmd/prism"


def prism() -> Path:
    """Return the program."""
    return installed("prism", f"{MODULE}@v{apache_beam.__version__}")


def on_prism() -> list[str]:
    """Return the options of ``uldp`` that choose it."""
    return ["--runner=PrismRunner", f"--prism_location={prism()}"]


@dataclass
class PrismServer(Server):
    """Prism as a job server, which takes the graph of a pipeline as it is."""

    def _command(self, port: int) -> Daemon:
        command = [str(prism()), f"--job_port={port}", "--serve_http=false", "--log_level=error"]
        return Daemon(command, self.folder / "prism.log", starts_others=True)
