"""The specs of a job of many workers: each process here is an object that knows nothing of the others."""

import logging
import os
import pickle
import time
from pathlib import Path
from typing import Any

import pytest

from tests.build import HOUR, START
from tests.fakes import memory
from uldp.collector.admission import Admission
from uldp.pipelines.jobs import sealed_specs
from uldp.pipelines.jobs.kept_specs import kept_specs
from uldp.pipelines.jobs.sealed_specs import SealedSpecs
from uldp.pipelines.jobs.spec_folder import SpecFolder
from uldp.pipelines.results.files import ResultsError
from uldp.schemas.errors import EndpointError, RequestError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.moments import moment_at
from uldp.transforms.io.agreed import Agreed

SPEC = """
collection: {}
version: 1
domain: {{labels_file: labels.csv}}
mechanism: {{name: urap, epsilon: 1.0}}
sensitive: [a]
window: {{size: 1h}}
"""
EVERY = SealedSpecs.EVERY_MS


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "labels.csv").write_text("value\na\nb\nc\n")
    write(folder, "one")
    monkeypatch.chdir(tmp_path)
    return folder


def write(folder: Path, name: str, more: str = "") -> None:
    (folder / f"{name}.yaml").write_text(SPEC.format(name) + more)


def begin(
    place: str = "specs", out: str = "", *, simulated_clock: bool = True, from_savepoint: bool = False
) -> tuple[SealedSpecs, list[str]]:
    said: list[str] = []
    out = out or str(Path("out").absolute())
    folder, admission = SpecFolder(place, out), Admission(sender_key=False, caps_senders=False)
    begun = SealedSpecs.begin(
        folder, out, admission, said.append, simulated_clock=simulated_clock, from_savepoint=from_savepoint
    )
    return begun, said


def worker(begun: SealedSpecs, monkeypatch: pytest.MonkeyPatch) -> SealedSpecs:
    """Another process, to which a step has brought its specs."""
    packed = pickle.dumps(begun)
    monkeypatch.setattr(sealed_specs, "_OF_PROCESS", {})
    found = pickle.loads(packed)
    assert isinstance(found, SealedSpecs)
    assert found is not begun
    return found


def spec_of(specs: SealedSpecs, name: str) -> CollectionSpec:
    return specs.of_key((name, 1)).spec


def test_copies_in_one_process_are_one_object(specs: Path) -> None:
    begun, said = begin()
    assert said == ["specs: one.yaml: new spec of one-v1"]
    assert pickle.loads(pickle.dumps(begun)) is begun
    assert [spec.collection for spec in begun] == ["one"]


def test_a_spec_opens_behind_what_any_worker_has_decided(specs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, _ = begin()
    first, second = worker(begun, monkeypatch), worker(begun, monkeypatch)
    first.settle(START)
    write(specs, "two")
    first.settle(START + EVERY - 1)  # that was decided before the file came
    assert ("two", 1) not in first.served
    second.settle(START + 2 * EVERY)
    assert spec_of(second, "two").opens == moment_at(START + EVERY)
    # The first worker has fallen behind; what it has decided stays, and what comes is as the second one has it.
    first.settle(START + EVERY - 1)
    assert ("two", 1) not in first.served
    first.settle(START + EVERY)
    assert spec_of(first, "two").opens == moment_at(START + EVERY)
    assert kept_specs("out")["two", 1].opens == moment_at(START + EVERY)


def test_a_job_begins_where_an_earlier_start_was_killed_before_its_first_seal(
    specs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ballot = Path("out/sealed/seals/000000000001-0123456789abcdef.ballot").absolute()
    ballot.parent.mkdir(parents=True)
    ballot.touch()
    monkeypatch.setattr(Agreed, "PATIENCE", 0.0)
    assert [spec.collection for spec in begin()[0]] == ["one"]


def test_a_job_that_goes_on_from_a_savepoint_needs_its_seals(specs: Path) -> None:
    with pytest.raises(ResultsError, match="the seals of the job's specs are gone; restore them"):
        begin(from_savepoint=True)


def test_a_look_from_before_an_edit_does_not_undo_what_another_worker_has_sealed(
    specs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, _ = begin()
    slow, quick = worker(begun, monkeypatch), worker(begun, monkeypatch)
    agree, edited = Agreed.agree, list[str]()

    def after_another(agreed: Agreed, *how: Any) -> bytes:
        if not edited:
            edited.append("one")
            write(specs, "one", "retired: true\n")
            quick.settle(START)
        return agree(agreed, *how)

    slow.settle(START)
    monkeypatch.setattr(Agreed, "agree", after_another)
    slow.settle(START + EVERY)  # it has looked at the folder before the edit
    assert spec_of(quick, "one").closes is not None
    assert spec_of(slow, "one").closes == spec_of(quick, "one").closes
    assert not slow.refused
    assert slow.take_refusals() == 0


def test_specs_and_results_may_be_far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    text = SPEC.format("one").replace("labels_file: labels.csv", "size: 3").replace("[a]", "[1]")
    monkeypatch.setattr(memory, "FILES", {"mem://b/specs/one.yaml": text.encode()})
    begun, _ = begin("mem://b/specs", "mem://b/out")
    worker(begun, monkeypatch).settle(START)
    memory.FILES["mem://b/specs/two.yaml"] = text.replace("one", "two").encode()
    reading = worker(begun, monkeypatch)
    reading.settle(START + HOUR)
    assert spec_of(reading, "two").opens == moment_at(START + EVERY)
    assert "mem://b/out/specs/two-v1/spec.yaml" in memory.FILES


def test_a_seal_of_a_backlog_reaches_an_hour_further_and_one_of_the_present_a_minute(
    specs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = START + 30 * HOUR
    monkeypatch.setattr(time, "time_ns", lambda: now * 1_000_000)
    reading = worker(begin(simulated_clock=False)[0], monkeypatch)
    for number, (published, until) in enumerate([(START, START + HOUR), (now - 5, now), (now + HOUR, now + HOUR)]):
        reading.settle(published)
        write(specs, f"more-{number}")
        reading.settle(until + EVERY)
        assert spec_of(reading, f"more-{number}").opens == moment_at(until + EVERY)


def test_a_worker_that_starts_again_and_a_new_job_go_on_from_the_seal(
    specs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, _ = begin()
    worker(begun, monkeypatch).settle(START)
    write(specs, "two", "estimator: empirical\n")
    worker(begun, monkeypatch).settle(START + HOUR)
    for again in (worker(begun, monkeypatch), begin()[0]):
        again.settle(START + HOUR)
        assert spec_of(again, "two").opens == moment_at(START + EVERY)
        assert spec_of(again, "two").estimators == ["empirical"]


def test_changes_reach_workers_that_read_no_messages(specs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, _ = begin()
    reading, other = worker(begun, monkeypatch), worker(begun, monkeypatch)
    reading.settle(START)
    write(specs, "one", "estimator: empirical\nretired: true\n")
    write(specs, "two")
    reading.settle(START + HOUR)
    assert spec_of(other, "two").opens == moment_at(START + EVERY)  # when a report of it comes to a step of this worker
    (specs / "two.yaml").write_text(SPEC.format("two") + "estimator: empirical\n")
    other.refresh()
    assert spec_of(other, "two").estimators != ["empirical"]
    later = time.monotonic() + EVERY / 1000
    monkeypatch.setattr(time, "monotonic", lambda: later)
    other.refresh()
    assert spec_of(other, "two").estimators == ["empirical"]
    assert spec_of(other, "one").estimators == ["empirical"]
    assert not spec_of(other, "one").retired
    with pytest.raises(RequestError, match="no windows for collection 'three' version 1"):
        other.of_key(("three", 1))


def test_a_report_that_no_spec_explains_has_the_folder_looked_at(specs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SealedSpecs, "AT_ONCE", 0.0)
    begun, _ = begin()
    reading = worker(begun, monkeypatch)
    reading.settle(START)
    write(specs, "two")
    reading.wanted = True
    reading.settle(START)
    assert spec_of(reading, "two").opens == moment_at(START + EVERY)
    assert not reading.wanted


def test_a_bad_file_is_counted_named_and_flagged_once(
    specs: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun, _ = begin()
    first, second = worker(begun, monkeypatch), worker(begun, monkeypatch)
    (specs / "one.yaml").write_text("collection: one\nversion: 1\nestimator: {")
    with caplog.at_level(logging.WARNING):
        first.settle(START)
        second.settle(START)
        second.settle(START + HOUR)
    (line,) = caplog.messages
    assert "one.yaml: refused, the spec before stays in force: line 3:" in line
    assert (first.take_refusals(), second.take_refusals()) == (1, 0)
    assert first.refused == second.refused == {("one", 1)}
    assert spec_of(second, "one").estimators == spec_of(begun, "one").estimators
    write(specs, "one")
    second.settle(START + 2 * HOUR)
    assert second.refused == frozenset()


def test_a_folder_that_is_away_changes_nothing(
    specs: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun, _ = begin()
    reading = worker(begun, monkeypatch)
    os.rename(specs, specs.with_name("away"))
    reading.settle(START)
    reading.settle(START + HOUR)
    assert set(caplog.messages) == {f"{specs}: no such directory; check the path; the specs before stay in force"}
    assert [spec.collection for spec in reading] == ["one"]


def test_a_report_is_not_decided_about_without_the_seals(specs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, _ = begin()
    reading = worker(begun, monkeypatch)
    (stored,) = Path("out/sealed/specs").iterdir()
    stored.write_text("{}")
    with pytest.raises(ResultsError, match="is gone or damaged; restore it"):
        begin()
    for path in Path("out/sealed/seals").iterdir():
        path.unlink()
    with pytest.raises(ResultsError, match="seals of the job's specs are gone; restore them"):
        reading.settle(START)


def test_a_job_without_a_folder_does_not_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EndpointError, match="specs: no such directory"):
        begin()
