"""The commands that read results or what clients sent do not wait for Beam, and do not need it."""

import subprocess
import sys
from pathlib import Path

from tests import build
from tests.pipelines.command import SPEC
from tests.pipelines.results import samples
from uldp.pipelines.jobs.identity import JobIdentity
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.local.stream import LocalStream

PROGRAM = """
import sys
from uldp.pipelines.cli import cli
for command in (
    "show results", "export results --to rows.csv", "report results --out page.html", "status results",
    "decode stream --spec spec.yaml", "verify --spec spec.yaml --value 3 stream", "rejected results", "late results",
    "merge results others --to merged", "prune results", "compact results",
):
    cli.main(command.split(), standalone_mode=False)
    assert not {"apache_beam", "grpc"} & sys.modules.keys(), command
"""


def results(folder: Path, hour: int) -> None:
    samples.save(folder, samples.at(hour))
    job = JobIdentity.of("stream", "stream", "content", [CollectionSpec.load(SPEC)])
    (folder / "job.json").write_bytes(job.encode())
    (spec := folder / "specs/c-v1/spec.yaml").parent.mkdir(parents=True)
    spec.write_text(samples.SPEC, encoding="utf-8")


def test_commands_that_read_results_do_not_import_beam(tmp_path: Path) -> None:
    results(tmp_path / "results", 0)
    results(tmp_path / "others", 1)
    identity = "{collection: c, version: 1, domain: {size: 5}, mechanism: {name: identity}, window: {size: 1h}}"
    (tmp_path / "spec.yaml").write_text(identity, encoding="utf-8")
    reports = [build.message(build.report(number, 3)) for number in range(1000)]
    LocalStream.create(tmp_path / "stream").append(reports)
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
