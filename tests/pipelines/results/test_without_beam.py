"""The commands that read results do not wait for Beam, which takes longer to import than all that they do."""

import subprocess
import sys
from pathlib import Path

from tests.pipelines.command import SPEC
from tests.pipelines.results import samples
from uldp.pipelines.jobs.identity import JobIdentity
from uldp.schemas.specs.collection import CollectionSpec

PROGRAM = """
import sys
from uldp.pipelines.cli import cli
for command in (
    "show results", "export results --to rows.csv", "report results --out page.html", "prune results",
    "compact results",
):
    cli.main(command.split(), standalone_mode=False)
    assert "apache_beam" not in sys.modules, command
"""


def test_commands_that_read_results_do_not_import_beam(tmp_path: Path) -> None:
    samples.save(results := tmp_path / "results", samples.at(0))
    job = JobIdentity.of("stream", "stream", "content", [CollectionSpec.load(SPEC)])
    (results / "job.json").write_bytes(job.encode())
    (spec := results / "specs/c-v1/spec.yaml").parent.mkdir(parents=True)
    spec.write_text(samples.SPEC, encoding="utf-8")
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, check=True, capture_output=True)
