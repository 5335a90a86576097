"""The specs of a job that is submitted to a cluster, for the first time and again: what opens and closes, and when."""

import time
from collections.abc import Sequence
from pathlib import Path

import apache_beam as beam
import pytest

from tests.beams import needs_sources
from tests.build import HOUR, START
from tests.pipelines.jobs.conftest import SubmittedError
from uldp.pipelines.jobs.cluster import BrokerJob, cluster_options, follow_broker
from uldp.pipelines.jobs.kept_specs import keep_specs, kept_specs
from uldp.pipelines.jobs.settings import JobSettings
from uldp.pipelines.jobs.spec_folder import SpecFolder
from uldp.pipelines.jobs.submission import AHEAD_MS, latest_read, submitted
from uldp.pipelines.process import run_apart
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import moment_at
from uldp.transforms.io.kafka.endpoint import KafkaEndpoint
from uldp.transforms.io.kafka.topic import KafkaTopic

SPEC = """
collection: {}
version: 1
domain: {{size: 3}}
mechanism: {{name: rr, epsilon: 1.0}}
window: {{size: 1h}}
"""
#: The specs of a folder, or each by its name.
WAYS = pytest.mark.parametrize("by_folder", [True, False])


@pytest.fixture(autouse=True)
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("specs").mkdir()
    write("one")
    return Path("specs")


def write(name: str, more: str = "") -> None:
    Path("specs", f"{name}.yaml").write_text(SPEC.format(name) + more)


def given(folder: SpecFolder | None) -> list[CollectionSpec]:
    """What a command finds in the folder and the results, or is told by name."""
    return [*map(CollectionSpec.load, sorted(Path("specs").iterdir()))] if folder is None else folder.found()


def submit(
    latest: int | None, *, by_folder: bool = True, simulated_clock: bool = False
) -> tuple[dict[str, CollectionSpec], Sequence[str]]:
    """What a submission takes, by collection, and says; the results keep it."""
    folder = SpecFolder("specs", "out") if by_folder else None
    found = submitted(given(folder), folder, "out", latest, simulated_clock=simulated_clock)
    keep_specs("out", found.specs)
    return {spec.collection: spec for spec in found.specs}, found.lines


@WAYS
def test_a_new_spec_opens_and_a_retired_one_closes_behind_what_was_read_once_and_for_all(by_folder: bool) -> None:
    write("old")
    first, _ = submit(None, by_folder=by_folder)
    assert {name: (spec.opens, spec.closes) for name, spec in first.items()} == dict.fromkeys(first, (None, None))
    write("two")
    write("old", "retired: true\n")
    bound = moment_at(START + 1)
    times = {"old": (None, bound), "one": (None, None), "two": (bound, None)}
    second, lines = submit(START, by_folder=by_folder)
    assert {name: (spec.opens, spec.closes) for name, spec in second.items()} == times
    assert [line.removeprefix("specs: two.yaml: ") for line in lines if "two" in line] == [
        "new spec of two-v1, takes reports published from 2026-01-01T09:00:00.001Z on"
    ]
    again, lines = submit(START + HOUR, by_folder=by_folder)
    assert {name: (spec.opens, spec.closes) for name, spec in again.items()} == times
    assert not any("spec of" in line for line in lines)


def test_a_submission_refuses_each_file_that_it_does_not_take_and_keeps_nothing() -> None:
    submit(None)
    write("one", "limits: {max_age: 2h}\n")
    write("two", "estimators: mle\n")
    write("three")
    with pytest.raises(RequestError) as refused:
        submit(START)
    one, two = str(refused.value).splitlines()
    assert one == "specs: one.yaml: limits.max_age has changed, and the job has counted by it; raise the version"
    assert two.startswith("specs: two.yaml: estimators: ")
    assert kept_specs("out").keys() == {("one", 1)}


def test_a_spec_that_is_named_may_change_what_late_is_and_goes_on_with_its_time() -> None:
    submit(None, by_folder=False)
    write("two")
    submit(START, by_folder=False)
    Path("specs/two.yaml").write_text(SPEC.format("two").replace("1h}", "1h, allowed_lateness: 1h}"))
    two = submit(START + HOUR, by_folder=False)[0]["two"]
    assert (two.opens, two.window.allowed_lateness.seconds) == (moment_at(START + 1), 3600)
    write("two", "opens: 2026-01-01T10:00Z\n")
    with pytest.raises(RequestError, match=r"^two-v1: opens is later .*, 2026-01-01T09"):
        submit(START + HOUR, by_folder=False)


@WAYS
@pytest.mark.parametrize("change", ["two", "one"])
def test_no_spec_opens_or_closes_behind_a_simulated_clock(change: str, by_folder: bool) -> None:
    submit(None, by_folder=by_folder, simulated_clock=True)
    write("one", "estimator: empirical\n")
    assert submit(START, by_folder=by_folder, simulated_clock=True)[0]["one"].estimators == ["empirical"]
    write(change, "retired: true\n" if change == "one" else "")
    with pytest.raises(
        RequestError, match=f"^{change}-v1: opens or closes .* choose another --to, without a savepoint$"
    ):
        submit(START, by_folder=by_folder, simulated_clock=True)


@pytest.mark.parametrize("trace", ["counts/c-v1/0/0.avro", "rejected/0.avro", "late/0.avro"])
@pytest.mark.parametrize("place", ["out", "private", "mem://b/out"])
def test_what_earlier_runs_may_have_read_ends_a_minute_ahead(
    place: str, trace: str, far_away: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: START * 1_000_000)
    out = "out" if place == "private" else place
    assert latest_read(out, "private", from_savepoint=False) is None
    assert latest_read(out, None, from_savepoint=True) == START + AHEAD_MS
    if "://" in place:
        far_away[f"{place}/{trace}"] = b""
    else:
        Path(place, trace).parent.mkdir(parents=True)
        Path(place, trace).touch()
    assert latest_read(out, "private", from_savepoint=False) == START + AHEAD_MS


@needs_sources
@pytest.mark.usefixtures("submitted")
@WAYS
def test_the_results_keep_when_a_spec_opens_before_the_job_runs(
    by_folder: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[set[str]] = []

    def run(*_: object, **__: object) -> None:
        kept.append({f"{name}: {spec.opens is not None}" for (name, _), spec in kept_specs("out").items()})
        raise SubmittedError

    monkeypatch.setattr(beam.Pipeline, "run", run)
    said = list[str]()
    for more in ([], ["--savepoint_path=file:///savepoint"]):
        folder = SpecFolder("specs", "out") if by_folder else None
        source = KafkaEndpoint(KafkaTopic("broker:9092", "reports"))
        job = BrokerJob(given(folder), source, JobSettings(say=said.append))
        options = cluster_options(["--runner=PortableRunner", "--job_endpoint=127.0.0.1:1", *more])
        with pytest.raises(SubmittedError):
            follow_broker(job, "out", options, run_apart=run_apart, folder=folder)
        write("two")
    assert kept == [{"one: False"}, {"one: False", "two: True"}]
    assert sum("specs: is read at submission; to change specs, stop the job" in line for line in said) == 2 * by_folder
    assert sum("new spec of two-v1, takes reports published from" in line for line in said) == 1
