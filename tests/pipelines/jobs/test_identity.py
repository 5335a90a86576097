"""Whose results a directory holds: the same job may come again, and another is refused before it writes anything."""

import json
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from tests import build
from tests.build import START
from uldp.pipelines.jobs import outputs as locks
from uldp.pipelines.jobs.identity import JobIdentity
from uldp.pipelines.jobs.local import backfill, follow, pipeline_options, refuse_overlap
from uldp.pipelines.jobs.outputs import claimed
from uldp.pipelines.jobs.progress import summary
from uldp.pipelines.results.files import ResultsError
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.endpoints import parse_endpoint
from uldp.transforms.io.local.stream import LocalStream


def stream_of(path: Path, first: int, n: int) -> LocalStream:
    """A closed stream of reports; a stream with another ``first`` has none of them."""
    stream = LocalStream.create(path, simulated_clock=True)
    stream.append([build.message(build.report(number, 1)) for number in range(first, first + n)])
    stream.close()
    return stream


def count(source: Path, out: Path, *specs: CollectionSpec) -> str:
    backfill(specs or [build.spec()], source, out, pipeline_options([]))
    return in_all(out)


def in_all(out: Path) -> str:
    """Where all reports went."""
    return next(line for line in summary(out).splitlines() if line.startswith("in all: "))


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


TEN = "in all: 10 received = 10 counted + 0 duplicate + 0 late + 0 rejected"


def test_the_same_job_comes_again_from_wherever_it_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream_of(tmp_path / "stream", 0, 10)
    assert count(tmp_path / "stream", tmp_path / "out") == TEN
    before = contents(tmp_path / "out")
    monkeypatch.chdir(tmp_path)
    assert count(Path("stream"), Path("out")) == TEN
    assert contents(tmp_path / "out") == before
    (tmp_path / "stream").rename(tmp_path / "moved")
    assert count(Path("moved"), Path("out")) == TEN


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "specs", "says"),
    [
        ("other", [build.spec()], "holds the results of another job, uldp backfill --from "),
        ("stream", [build.spec(window={"size": "2h"})], "window.size of c-v1 was 1h and is 2h"),
        ("stream", [build.spec(limits={"max_clock_skew": "1h"})], "limits.max_clock_skew of c-v1 was 10m and is 1h"),
        ("stream", [build.spec(retired=True)], "retired of c-v1 was false and is true"),
        (
            "stream",
            [build.spec(), build.spec(version=2)],
            "holds the results of a job with other specs; only one of the two jobs has c-v2",
        ),
    ],
)
def test_another_job_is_refused_and_changes_nothing(
    source: str, specs: list[CollectionSpec], says: str, tmp_path: Path
) -> None:
    for name, first in (("stream", 0), ("other", 10)):
        stream_of(tmp_path / name, first, 10)
    count(tmp_path / "stream", tmp_path / "out")
    before = contents(tmp_path / "out")
    with pytest.raises(ResultsError, match=r"Choose another --to, or remove ") as refused:
        count(tmp_path / source, tmp_path / "out", *specs)
    assert says in str(refused.value)
    assert contents(tmp_path / "out") == before


def test_a_stream_that_was_made_anew_or_has_grown_is_another_archive(tmp_path: Path) -> None:
    stream_of(tmp_path / "stream", 0, 10)
    count(tmp_path / "stream", tmp_path / "out")
    (tmp_path / "stream").rename(tmp_path / "before")
    again = stream_of(tmp_path / "stream", 10, 10)
    with pytest.raises(ResultsError, match=r"stream, which has changed since then"):
        count(tmp_path / "stream", tmp_path / "out")
    assert count(tmp_path / "stream", tmp_path / "fresh") == TEN
    again.append([Message(b"no report", START)])
    with pytest.raises(ResultsError, match=r"stream, which has changed since then"):
        count(tmp_path / "stream", tmp_path / "fresh")


def test_a_job_that_follows_accepts_what_came_since_and_no_other_stream(tmp_path: Path) -> None:
    def run(source: Path) -> str:
        follow([build.spec()], source, tmp_path / "out", pipeline_options([]))
        return in_all(tmp_path / "out")

    stream = stream_of(tmp_path / "stream", 0, 10)
    assert run(stream.path) == TEN
    stream.append([Message(b"no report", START)])
    assert run(stream.path) == "in all: 11 received = 10 counted + 0 duplicate + 0 late + 1 rejected"
    stream.path.rename(tmp_path / "before")
    stream_of(tmp_path / "stream", 10, 10)
    with pytest.raises(ResultsError, match="which has changed since then"):
        run(tmp_path / "stream")
    with pytest.raises(ResultsError, match=r"another job, uldp stream --from .*/stream\. Choose"):
        count(tmp_path / "before", tmp_path / "out")


def test_what_a_reading_may_change_a_restart_from_a_checkpoint_may_change_too() -> None:
    """It does not read again what it has counted, refused and kept."""
    begun = JobIdentity.of("stream", "kafka:one:9092/t", "topic", [build.spec()], resumes=True)
    specs = [build.spec(retired=True, limits={"max_age": "2h"}), build.spec(version=2)]
    later = JobIdentity.of("stream", "kafka:two:9092/t", "topic", specs, resumes=True)
    assert begun.difference(later) is None
    joined = begun.join(JobIdentity.of("stream", "kafka:two:9092/t", "topic", specs[1:], resumes=True))
    assert sorted(joined.specs) == ["c-v1", "c-v2"]
    assert begun.difference(replace(begun, content="another topic of this name")) is not None


def test_a_state_stays_in_its_shards() -> None:
    begun = JobIdentity.of("stream", "kafka:one:9092/t", "topic", [], resumes=True, shards=64)
    said = begun.difference(replace(begun, shards=16))
    assert said is not None
    assert "in 64 shards, which no savepoint changes; add --shards 64, or begin a new job" in said
    assert JobIdentity.decode(begun.encode()) == begun
    reading = replace(begun, resumes=False)  # a backfill keeps no state
    assert reading.difference(replace(reading, shards=16)) is None


IDENTITY = JobIdentity.of("backfill", "stream", "content", [build.spec()])
FIELDS: dict[str, Any] = json.loads(IDENTITY.encode())
OF_OTHER_TYPES = {"state": "new", "specs": [], "shard_key": 1.5, "resumes": "maybe", "command": "remove"}
UNREADABLE = {
    "nothing": b"",
    "mapping": b"{}",
    "list": b"[]",
    "no text": b"\xff",
    "deep": b"[" * 200_000,
    **{f"{key} {value}": json.dumps(FIELDS | {key: value}).encode() for key, value in OF_OTHER_TYPES.items()},
    **{
        f"no {left_out}": json.dumps({key: value for key, value in FIELDS.items() if key != left_out}).encode()
        for left_out in ("state", "apart", "registry_ids", "shard_key")
    },
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_identity_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "job.json").write_bytes(UNREADABLE[name])
    with (
        pytest.raises(ResultsError, match=rf"^{tmp_path}/job\.json: not the identity of a job; restore "),
        claimed(str(tmp_path), [build.spec()], IDENTITY),
    ):
        pass


def test_one_job_at_a_time_writes_to_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "LOCK_SECONDS", 0.0)
    with claimed(str(tmp_path / "out"), [build.spec()], IDENTITY):
        stream_of(tmp_path / "stream", 0, 1)
        with pytest.raises(ResultsError, match="another job is writing to it; wait for its end"):
            count(tmp_path / "stream", tmp_path / "out")


def test_a_job_waits_for_the_one_that_is_ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, first = str(tmp_path / "out"), ExitStack()
    first.enter_context(claimed(out, [build.spec()], IDENTITY))
    sleep = mock.Mock(side_effect=lambda seconds: first.close())  # it has found the directory locked
    monkeypatch.setattr(locks, "LOCK_SECONDS", 60.0)
    monkeypatch.setattr(locks, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    with claimed(out, [build.spec()], IDENTITY):
        sleep.assert_called_once()


@pytest.mark.parametrize(
    ("make", "holds"),
    [
        (lambda path: stream_of(path, 0, 1), "holds a local stream; choose a new or empty directory for --to"),
        (lambda path: (path.mkdir(), (path / "letter.txt").touch()), "holds nothing that uldp writes; choose a new"),
        (lambda path: path.touch(), "holds nothing that uldp writes; choose a new or empty directory for --to"),
        (lambda path: (path / "specs" / "c-v1").mkdir(parents=True), "holds nothing that uldp writes; choose a new"),
    ],
)
def test_a_directory_of_something_else_is_refused(make: Any, holds: str, tmp_path: Path) -> None:
    make(out := tmp_path / "out")
    stream = stream_of(tmp_path / "stream", 0, 1)
    before = contents(tmp_path)
    with pytest.raises(ResultsError, match=holds):
        count(stream.path, out)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("source", "out"),
    [
        ("st", "st"),
        ("st", "st/results"),
        ("st", "./st/../st"),
        ("st/000000000000.avro", "st"),
        ("link", "st"),
        ("gs://bucket/a", "gs://bucket/a/"),
        ("gs://bucket/a", "gs://bucket/a/results"),
        ("gs://bucket/a/late", "gs://bucket/a"),
    ],
)
def test_results_are_apart_from_what_is_read(
    source: str, out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stream_of(Path("st"), 0, 1)
    Path("link").symlink_to("st")
    before = contents(tmp_path)
    with pytest.raises(ValueError, match=f"^--from {source} and --to {out} overlap; choose a --to that "):
        refuse_overlap(parse_endpoint(source), out)
    if "://" not in source:
        with pytest.raises(ValueError, match="overlap"):
            count(Path(source), Path(out))
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("source", "out"),
    [("live/late", "late"), ("stream", "stream2"), ("gs://b/a", "gs://b/ab"), ("gs://b/a", "a"), ("a", "gs://b/a")],
)
def test_neighbours_do_not_overlap(source: str, out: str) -> None:
    refuse_overlap(parse_endpoint(source), out)
