"""A sink that cannot be written: the job fails loudly, and resumes without loss once there is room."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests import build
from tests.build import START
from tests.pipelines.command import Run, with_room
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message
from uldp.transforms.io.local.stream import LocalStream

REPORTS = 2_000
SPEC = f"""
collection: one-each
version: 1
domain: {{size: {REPORTS}}}
mechanism: {{name: identity}}
window: {{size: 1h}}
limits: {{min_reports: 1}}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "message"), [("backfill", "File exists"), ("stream", "File too large")], ids=["in the way", "no room"]
)
def test_the_job_fails_loudly_and_resumes_without_loss(
    command: str, message: str, uldp: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.yaml").write_text(SPEC, encoding="utf-8")
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    reports = [build.report(symbol, symbol, START + symbol, ("one-each", 1)) for symbol in range(REPORTS)]
    stream.append([Message(report.encode(), report.event_time) for report in reports])
    stream.close()
    out = tmp_path / "out"
    arguments = [command, "--spec", "spec.yaml", "--from", "stream", "--to", "out"]

    # What is in the way is so in a directory of the same job: any other is refused before.
    assert uldp(*arguments)[0] == 0
    for folder in ("counts", "estimates"):
        shutil.rmtree(out / folder)

    if command == "backfill":
        (out / "estimates").write_text("in the way")
        code, _, errors = uldp(*arguments)
        (out / "estimates").unlink()
    else:  # the file of an estimate takes more bytes than the limit
        failed = subprocess.run(with_room(2_000, *arguments), capture_output=True, text=True)
        code, errors = failed.returncode, failed.stderr
    assert code == 1
    assert message in errors.splitlines()[-1]
    assert not list(out.rglob("*.tmp"))  # nor half a file

    assert uldp(*arguments)[0] == 0
    (pane,) = newest(ResultsFolder(out).statistics())
    assert pane.cells.tolist() == [1] * REPORTS
    assert pane.accounting == Accounting(received=REPORTS, counted=REPORTS)
