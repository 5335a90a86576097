"""Whatever is removed from the results of a local job, or restored from a backup: the next run is exact, or refuses."""

import shutil
from pathlib import Path

import pytest

from tests.build import HOUR, START, message, report, spec
from tests.pipelines.jobs.test_resuming import begun, copied, facts, follow, stopped_at
from uldp.pipelines.results.compact import compact
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.prune import prune
from uldp.schemas.records import Message
from uldp.schemas.specs.specfile import SpecError
from uldp.transforms.io.local.journal import JOURNAL
from uldp.transforms.io.local.resume_point import RESUME
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import StreamError

LIMITS = {"max_clock_skew": "1h", "max_age": "3d"}
SPEC = spec(window={"size": "1d", "allowed_lateness": "3h"}, limits=LIMITS)
FEW = spec(collection="f", window={"size": "1d"}, limits=LIMITS | {"min_reports": 25})
SPECS = (SPEC, FEW)
#: What a job says that has noticed a loss.
AGAIN = "is read from its beginning, to write it again"


def published() -> list[Message]:
    """Two reports an hour for six days; late ones and rejected ones on each of the first days."""
    sent = []
    for hour in range(144):
        now = START + hour * HOUR
        sent += [message(report(2 * hour + n, hour % 5, now, each.key), now) for n, each in enumerate(SPECS)]
        if hour % 24 == 20:
            sent.append(message(report(1000 + hour, 1, now - 30 * HOUR), now))
            sent.append(Message(b"nobody's %d" % hour, now))
    return sent


class Runs:
    """A job that was stopped on its last day: its stream, its results then and a day before, and all facts."""

    def __init__(self, folder: Path) -> None:
        self.stream = begun(folder, published(), 72)
        paths = self.stream.segments()
        stopped_at(self.stream, folder / "older", paths[-14], SPECS)
        copied(folder / "older", folder / "newer")
        stopped_at(self.stream, folder / "newer", paths[-2], SPECS)
        self.older, self.newer = folder / "older", folder / "newer"
        follow(self.stream, folder / "whole", SPECS)
        self.facts = facts(folder / "whole")

    def without(self, folder: Path, segments: int) -> LocalStream:
        """The stream without its first segments, as an operator declares it."""
        copied(self.stream.path, folder)
        for path in sorted(folder.glob("*.avro"))[:segments]:
            path.unlink()
        settings = (folder / "stream.json").read_text().replace('"first": 0', f'"first": {segments}')
        (folder / "stream.json").write_text(settings)
        shutil.copy(self.stream.path / "closed", folder)
        return LocalStream.open(folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("runs"))


def exact_or_refused(runs: Runs, out: Path, stream: LocalStream | None = None) -> str:
    """Run the job again, and return what it says; its results must be those of one run, if they can be read."""
    try:
        said = follow(stream or runs.stream, out, SPECS)
        assert facts(out) == runs.facts
    except (ResultsError, StreamError, SpecError) as error:
        return str(error)
    return "\n".join(said)


def first_of(runs: Runs, kind: str) -> Path:
    """The newest file of a window that is sealed, or the first one of late or rejected reports."""
    files = sorted(path.relative_to(runs.newer) for path in runs.newer.rglob("*") if path.is_file())
    first = next(path for path in files if str(path).startswith(kind))
    return first if len(first.parts) == 2 else max(path for path in files if path.parent == first.parent)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["counts", "few", "rejected"])
def test_a_result_that_is_removed_is_written_again(runs: Runs, tmp_path: Path, kind: str) -> None:
    out, removed = copied(runs.newer, tmp_path / "out"), first_of(runs, kind)
    (out / removed).unlink()
    said = exact_or_refused(runs, out)
    assert f"{runs.stream.path} {AGAIN}" in said
    assert str(out / removed.parts[0]) in said
    assert "resuming at" in exact_or_refused(runs, out)


@pytest.mark.slow
def test_a_result_is_not_written_again_from_segments_that_are_gone(runs: Runs, tmp_path: Path) -> None:
    out, stream = copied(runs.newer, tmp_path / "out"), runs.without(tmp_path / "stream", 19)
    assert "resuming at" in exact_or_refused(runs, copied(runs.newer, tmp_path / "untouched"), stream)
    (out / first_of(runs, "estimates")).unlink()
    for _ in range(2):
        with pytest.raises(
            ResultsError, match=r"is gone.*, and segments of .*stream are gone from which the job count"
        ):
            follow(stream, out, SPECS)
        (out / RESUME).unlink(missing_ok=True)


@pytest.mark.slow
def test_older_results_with_a_newer_point(runs: Runs, tmp_path: Path) -> None:
    out = copied(runs.older, tmp_path / "out")
    shutil.copy(runs.newer / RESUME, out)
    assert f"{out / JOURNAL}: is older than {RESUME}, or another one" in exact_or_refused(runs, out)
    assert facts(out) == runs.facts


@pytest.mark.slow
def test_what_was_pruned_is_not_lost(runs: Runs, tmp_path: Path) -> None:
    out = copied(runs.newer, tmp_path / "out")
    pruned = prune(out, before=2**40)
    assert min(pruned.late, pruned.rejected, pruned.few) > 0
    assert "resuming at" in "\n".join(follow(runs.stream, out, SPECS))


@pytest.mark.slow
def test_panes_that_were_joined_are_not_lost_unless_their_file_is(runs: Runs, tmp_path: Path) -> None:
    out = copied(runs.newer, tmp_path / "out")
    assert compact(out).joined > 0
    joined = max(out.glob("counts/*.avro"), key=lambda path: path.stat().st_size)
    content = joined.read_bytes()
    assert "resuming at" in exact_or_refused(runs, copied(out, tmp_path / "untouched"))
    for damage in (b"", content[: len(content) // 2], None):
        damaged = copied(out, tmp_path / f"damaged {damage is None or len(damage)}")
        path = damaged / joined.relative_to(out)
        path.unlink() if damage is None else path.write_bytes(damage)
        said = exact_or_refused(runs, damaged)
        assert AGAIN in said or str(path) in said


@pytest.mark.slow
def test_panes_that_newer_ones_replace_are_not_lost(runs: Runs, tmp_path: Path) -> None:
    """Whichever of the runs removes the file of a pane when the next pane of its window is written."""
    paths = runs.stream.segments()
    for before, after in [(True, True), (True, False), (False, True)]:
        out = tmp_path / f"{before} {after}"
        stopped_at(runs.stream, out, paths[-14], SPECS, newest_only=before)
        stopped_at(runs.stream, out, paths[-2], SPECS, newest_only=after)
        said = follow(runs.stream, out, SPECS, newest_only=after)
        assert said[0].startswith("resuming at")
        assert facts(out) == runs.facts


@pytest.mark.slow
@pytest.mark.parametrize("again", [RESUME, None])
def test_a_segment_that_has_changed_is_named(runs: Runs, tmp_path: Path, again: str | None) -> None:
    out, stream = copied(runs.newer, tmp_path / "out"), runs.without(tmp_path / "stream", 0)
    if again is not None:
        (out / again).unlink()
    changed = stream.segments()[-8]
    changed.unlink()
    LocalStream.create(tmp_path / "other").append(published()[:3]).rename(changed)
    with pytest.raises(StreamError, match=rf"{changed}: has changed since the job has read it, as .*{JOURNAL} says"):
        follow(stream, out, SPECS)
