"""Late and rejected reports hold what clients sent: only the owner reads them, in a place of their own if wanted."""

import json
from pathlib import Path
from stat import S_IMODE

import pytest

from tests import build
from tests.build import HOUR, START
from tests.pipelines.command import Run
from uldp.pipelines.jobs.identity import JobIdentity
from uldp.pipelines.jobs.outputs import claimed_both
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.records import Message
from uldp.transforms.io.local.stream import LocalStream

SPEC = build.MINIMAL | {"domain": {"size": 2}, "mechanism": {"name": "identity"}, "limits": {"min_reports": 1}}
JOB = ("--spec", "spec.yaml", "--from", "stream", "--to", "out")


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stream with a counted, a late and a rejected report."""
    monkeypatch.chdir(tmp_path)
    Path("spec.yaml").write_text(json.dumps(SPEC))
    stream = LocalStream.create(Path("stream"), simulated_clock=True)
    stream.append([build.message(build.report(0, 1)), Message(b"{}", START + 1)])
    stream.append([build.message(build.report(1, 1), START + 9 * HOUR)])
    stream.close()


def modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}


@pytest.mark.parametrize("private", ["out", "apart/private"])
def test_only_the_owner_reads_late_and_rejected_reports(uldp: Run, private: str) -> None:
    uldp("stream", *JOB, *(["--private-to", private] if private != "out" else []))
    found = modes(Path(private))
    kept = {name: mode for name, mode in found.items() if name.startswith(("late", "rejected"))}
    assert len(kept) == 4  # two folders, with a file each
    assert {name: mode for name, mode in kept.items() if mode != (0o600 if name.endswith(".avro") else 0o700)} == {}
    assert {mode & 0o044 for name, mode in modes(Path("out")).items() if name.startswith("estimates")} == {0o044}


def test_a_private_place_holds_all_that_clients_sent(uldp: Run) -> None:
    lines = uldp("stream", *JOB, "--private-to", "private")[1].splitlines()
    assert "in all: 3 received = 1 counted + 0 duplicate + 1 late + 1 rejected" in lines
    assert "rejected: 1 not_avro" in lines
    assert S_IMODE(Path("private").stat().st_mode) == 0o700
    signed = {"resume.json", "journal.jsonl"}  # of a stream, with names of segments
    written = {path.name for path in Path("out").iterdir()} - signed
    assert written == {"job.json", "specs", "estimates", "counts"}
    assert {path.name for path in Path("private").iterdir()} == {"job.json", "late", "rejected"}
    assert [record.bodies for record in ResultsFolder(Path("private")).rejected()] == [(b"{}",)]


def test_a_private_place_that_is_the_results_is_the_default(uldp: Run) -> None:
    uldp("backfill", *JOB, "--private-to", "out/../out")
    assert len(list(ResultsFolder(Path("out")).rejected())) == 1


def test_a_private_place_is_of_one_job(tmp_path: Path) -> None:
    one, other = (JobIdentity.of("backfill", source, source, []) for source in ("one", "other"))
    private = str(tmp_path / "private")
    with claimed_both(str(tmp_path / "out"), private, [], one):
        pass
    with (
        pytest.raises(ResultsError, match=r"private: holds the results of another job.* Choose another --private-to"),
        claimed_both(str(tmp_path / "other"), private, [], other),
    ):
        pass
