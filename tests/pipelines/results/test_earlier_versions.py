"""Results of an earlier version, with other fields, are refused in one line that says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pipelines.results.samples import SPEC, write
from uldp.pipelines.jobs.identity import READABLE, JobIdentity
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.prune import prune
from uldp.pipelines.results.read import read_estimates, read_statistics
from uldp.pipelines.results.specs import read_specs
from uldp.schemas.framing import Schema, parse_schema

REMEDY = r"an earlier version of uldp wrote .* run (the|its) job again into another directory$"


def earlier(name: str) -> Schema:
    """The beginning of a record as it was."""
    counts = {"name": "counts", "type": {"type": "array", "items": "long"}}
    return parse_schema({"type": "record", "name": f"uldp.{name}", "fields": [counts]})


@pytest.mark.parametrize("read", [read_estimates, read_statistics, read_specs, lambda out: prune(out, before=0.0)])
@pytest.mark.parametrize(("state", "refused"), [(READABLE - 1, True), (READABLE, False)])
def test_a_directory(read: Any, state: int, refused: bool, tmp_path: Path) -> None:
    identity = json.loads(JobIdentity("stream", "s", "c", {}).encode()) | {"state": state}
    (tmp_path / "job.json").write_text(json.dumps(identity))
    (tmp_path / "specs/c-v1").mkdir(parents=True)
    (tmp_path / "specs/c-v1/spec.yaml").write_text(SPEC)
    if refused:
        with pytest.raises(ResultsError, match=f"^{tmp_path}: {REMEDY}"):
            read(tmp_path)
    else:
        read(tmp_path)


@pytest.mark.parametrize(
    ("folder", "name", "read"),
    [("counts", "SupportCounts", read_statistics), ("estimates", "Estimate", read_estimates)],
)
def test_a_file(folder: str, name: str, read: Any, tmp_path: Path) -> None:
    path = write(tmp_path / folder / "c-v1/w/000000.avro", earlier(name), {"counts": [1]})
    with pytest.raises(ResultsError, match=f"^{path}: {REMEDY}"):
        read(tmp_path)
