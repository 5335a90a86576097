"""A place of rows that is lost, or set back to a backup, has all windows again after the next start of its job."""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import pytest

from tests.build import HOUR, START, message, report, spec
from tests.pipelines.jobs.test_resuming import begun, follow, stopped_at
from tests.transforms.io.test_row_sinks import Query, Row, in_utc, newest, of_duckdb, of_postgresql
from uldp.pipelines.audit.audit import audit
from uldp.pipelines.jobs import local
from uldp.pipelines.jobs.identity import JobIdentity
from uldp.pipelines.jobs.publishing import Publishing
from uldp.pipelines.jobs.settings import JobSettings
from uldp.pipelines.results.export_files import write_rows
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.errors import EndpointError
from uldp.schemas.rows import COLUMNS
from uldp.transforms.io.endpoints import parse_endpoint
from uldp.transforms.io.files import FilesEndpoint
from uldp.transforms.io.folders import JOB
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.row_sink import TABLE, VIEW, KeptPane, Made, RowSink

#: One worker has the server.
pytestmark = pytest.mark.xdist_group("postgresql")

LIMITS = {"max_clock_skew": "1h", "max_age": "3d"}
SPEC = spec(window={"size": "6h", "allowed_lateness": "1h"}, limits=LIMITS, estimator=["mle", "empirical"])
DAYS = 8
#: START is not at the beginning of one.
WINDOWS = DAYS * 4 + 1


@pytest.fixture
def stream(tmp_path: Path) -> LocalStream:
    """Eight days, of which a job that is started again at the end reads three."""
    every = [message(report(n, n % 5, START + n * HOUR), START + n * HOUR) for n in range(DAYS * 24)]
    return begun(tmp_path, every, DAYS * 4)


def exported(out: Path) -> list[Row]:
    """The rows that ``uldp export`` writes."""
    folder, target = ResultsFolder(out), out.with_suffix(".parquet")
    write_rows(target, folder.with_specs(folder.published()))
    with duckdb.connect() as connection:
        return in_utc(connection.execute(f"SELECT {', '.join(COLUMNS)} FROM '{target}'").fetchall())


def faults(stream: LocalStream, out: Path) -> list[str]:
    """The faults that an audit names, which asks all places that the job was started with."""
    places = [parse_endpoint(uri) for uri in JobIdentity.read(out / JOB).sinks]
    return [*audit(FilesEndpoint(str(stream.path)), out, places=places).faults]


def of_rows(said: Sequence[str]) -> list[str]:
    """The lines about what a place has."""
    return [line for line in said if "lack" in line or "nobody can ask" in line]


def windows(query: Query) -> int:
    """The number of windows that a place has."""
    return len({row[0] for row in query(f"SELECT window_start FROM {VIEW}")})


@pytest.mark.parametrize("loss", ["all", "backup"])
def test_a_start_writes_again_what_was_lost(stream: LocalStream, tmp_path: Path, loss: str) -> None:
    path, out, segments = tmp_path / "rows", tmp_path / "out", stream.segments()
    query, publishing = of_duckdb(path), Publishing(parse_endpoint(f"duckdb:{path}"))
    stopped_at(stream, out, segments[14], [SPEC], publishing=publishing)
    shutil.copy(path, tmp_path / "backup")
    before = windows(query)
    stopped_at(stream, out, segments[-2], [SPEC], publishing=publishing)
    lacking = windows(query) - (before if loss == "backup" else 0)
    path.unlink()
    if loss == "backup":
        shutil.copy(tmp_path / "backup", path)
    lines = [line.partition(", the first")[0] for line in faults(stream, out) if "lacks" in line]
    assert lines == [f"duckdb:{path}: lacks {lacking} windows"]

    said = follow(stream, out, [SPEC], publishing=publishing)
    assert of_rows(said) == [f"duckdb:{path}: lacks {lacking} windows; writing them again"]
    assert in_utc(newest(query)) == exported(out)
    assert windows(query) == WINDOWS
    assert faults(stream, out) == []


def test_a_backfill_that_runs_again_writes_all(
    stream: LocalStream, tmp_path: Path, postgresql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, query, publishing = tmp_path / "out", of_postgresql(postgresql), Publishing(parse_endpoint(postgresql))
    # An audit takes the password from the environment, because no file of the job has it.
    monkeypatch.setenv("PGPASSWORD", (urlsplit(postgresql).password or "").replace("%20", " "))
    query(f"DROP TABLE IF EXISTS {TABLE} CASCADE")

    def backfill(estimator: str) -> list[str]:
        said: list[str] = []
        each = spec(window=SPEC.window.model_dump(), limits=LIMITS, estimator=estimator)
        options = local.pipeline_options([])
        settings = JobSettings(publishing=publishing, say=said.append)
        local.backfill([each], stream.path, out, options, settings)
        return said

    assert backfill("mle") == []
    query(f"DROP TABLE {TABLE} CASCADE")
    assert "lacks" in str(faults(stream, out))
    assert backfill("mle") == []
    assert in_utc(newest(query)) == exported(out)
    # Estimates by an estimator that the spec no longer names are in the results alone.
    query(f"DROP TABLE {TABLE} CASCADE")
    assert backfill("empirical") == [f"{publishing.estimates_to}: lacks {WINDOWS} windows; writing them again"]
    assert in_utc(newest(query)) == exported(out)
    assert faults(stream, out) == []


def test_a_place_that_gets_a_job_later_has_all_windows(stream: LocalStream, tmp_path: Path) -> None:
    out = tmp_path / "out"
    follow(stream, out, [SPEC])
    first, second = (f"duckdb:{tmp_path / name}" for name in ("first", "second"))
    for uri in (first, second):
        said = follow(stream, out, [SPEC], publishing=Publishing(parse_endpoint(uri)))
        assert of_rows(said) == [f"{uri}: lacks {WINDOWS} windows; writing them again"]
    assert newest(of_duckdb(tmp_path / "second")) == newest(of_duckdb(tmp_path / "first"))
    assert JobIdentity.read(out / JOB).sinks == (first, second)
    assert faults(stream, out) == []
    (tmp_path / "first").unlink()
    (fault,) = faults(stream, out)
    assert fault.endswith(f"take the place out of sinks in {out / JOB}")
    assert not (tmp_path / "first").exists()


def test_windows_of_other_results_are_said(stream: LocalStream, tmp_path: Path) -> None:
    place = Publishing(parse_endpoint(f"duckdb:{tmp_path / 'rows'}"))
    assert of_rows(follow(stream, tmp_path / "out", [SPEC], publishing=place)) == []
    other = begun(tmp_path / "other", [message(report(1, 1), START)] * 2, 1)
    (said,) = of_rows(follow(other, tmp_path / "other-out", [SPEC], publishing=place))
    assert said == (
        f"{place.estimates_to}: has {WINDOWS} windows that the results lack, of other results or of lost ones; if two"
        " results have a window, the pane that has received more is valid"
    )


@pytest.mark.usefixtures("far_away")
def test_results_behind_a_url_are_compared_too(stream: LocalStream, tmp_path: Path) -> None:
    place, said = Publishing(parse_endpoint(f"duckdb:{tmp_path / 'rows'}")), list[str]()
    local.backfill([SPEC], stream.path, "mem://bucket/out", local.pipeline_options([]))
    local.backfill([SPEC], stream.path, tmp_path / "out", local.pipeline_options([]))
    place.check(here=True)
    place.complete("mem://bucket/out", said.append)
    assert said == [f"{place.estimates_to}: lacks {WINDOWS} windows; writing them again"]
    assert in_utc(newest(of_duckdb(tmp_path / "rows"))) == exported(tmp_path / "out")


class Silent(RowSink):
    """A place of rows, of another package, that tells nothing."""

    def __str__(self) -> str:
        return "silent:"

    def check_estimates(self) -> None:
        """It is there."""

    def write(self, estimates: Sequence[Made]) -> None:
        """Forget them."""


def test_a_place_that_cannot_be_asked_is_said(stream: LocalStream, tmp_path: Path) -> None:
    to = Silent()
    said = of_rows(follow(stream, tmp_path / "out", [SPEC], publishing=Publishing(to)))
    assert said == [
        f"{to}: nobody can ask which windows it has, so it gets those that this job publishes, and lost ones stay lost"
    ]
    source, out = FilesEndpoint(str(stream.path)), tmp_path / "out"
    unasked = f"{to}: nobody can ask here which windows it has, so they are not compared"
    assert (audit(source, out, places=[to]).faults, [*audit(source, out, places=[to]).notes]) == ((), [unasked])


class Database(Silent):
    """A database that nobody may connect to who does not mean to."""

    def __str__(self) -> str:
        return "postgresql://stranger.example/trap"

    @property
    def recorded(self) -> str:
        return f"{self}?sslmode=require"

    def panes(self) -> Iterator[KeptPane] | None:
        """Tell that somebody has asked."""
        raise EndpointError("somebody has connected")


def test_results_alone_make_no_audit_connect_to_another_machine(stream: LocalStream, tmp_path: Path) -> None:
    source, out, place = FilesEndpoint(str(stream.path)), tmp_path / "out", Database()
    follow(stream, out, [SPEC])
    fields = json.loads((out / JOB).read_text())
    (out / JOB).write_text(json.dumps(fields | {"sinks": [place.recorded]}))
    found = audit(source, out)
    unnamed = f"{place.recorded}: not compared; name it with --estimates-to to let the audit ask it"
    assert (found.faults, [*found.notes]) == ((), [unnamed])
    found = audit(source, out, places=[place])
    assert not found.notes
    (fault,) = found.faults
    assert fault.startswith("somebody has connected; ")
