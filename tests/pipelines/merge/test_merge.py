"""Folders of results become one, in which each report is counted once; what cannot be shown to be so is refused."""

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.build import HOUR, MINUTE, START, spec
from tests.fakes import memory
from tests.pipelines.command import Run
from uldp.mechanisms.catalog import build_protocol
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.jobs.settings import JobSettings
from uldp.pipelines.merge.merge import Merged
from uldp.pipelines.merge.merge import merge as merge_places
from uldp.pipelines.results import catalog
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest, total_accounting
from uldp.pipelines.results.panes import read_panes
from uldp.schemas.pane import Accounting, Pane, PaneHeader, PaneKind
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.local.stream import LocalStream

HOURS, N = 8, 1_600
SPEC = spec(
    domain={"size": 6}, sensitive=[1, 2], tags=[{"name": "home"}], window={"size": "1h", "allowed_lateness": "30m"}
)


def changed(**keys: Any) -> CollectionSpec:
    """The spec with other keys."""
    return spec(**{**SPEC.model_dump(mode="json", exclude_none=True), **keys})


def sent(seed: int = 1, spec: CollectionSpec = SPEC) -> list[Message]:
    """Reports of eight hours, each published up to 20 minutes after its time."""
    rng = np.random.default_rng(seed)
    mechanism = build_protocol(spec).mechanism
    symbols = mechanism.perturb(rng.integers(0, mechanism.size, N), rng)
    times = START + rng.integers(0, HOURS * HOUR, N)
    published = times + rng.integers(0, 20 * MINUTE, N)
    data = [
        Report(*spec.key, rng.bytes(16), int(time), int(symbol)).encode()
        for time, symbol in zip(times, symbols, strict=True)
    ]
    messages = [Message(each, int(at)) for each, at in zip(data, published, strict=True)]
    return sorted(messages, key=lambda message: message.publish_time)


def stream_of(path: Path, messages: Sequence[Message]) -> LocalStream:
    stream = LocalStream.create(path, simulated_clock=True)
    for part in np.array_split(np.arange(len(messages)), 6):
        stream.append([messages[index] for index in part])
    stream.close()
    return stream


def follow(messages: Sequence[Message], out: Path, spec: CollectionSpec = SPEC, *, keep_ids: bool = True) -> Path:
    """Follow a stream of these messages."""
    stream = stream_of(out.with_suffix(".stream"), messages)
    options = jobs.pipeline_options([])
    jobs.follow([spec], stream.path, out, options, JobSettings(keep_ids=keep_ids))
    return out


def backfill(
    source: Sequence[Message] | Path,
    out: Path,
    spec: CollectionSpec = SPEC,
    *,
    keep_ids: bool = True,
    private: str | None = None,
) -> Path:
    """Count an archive of these messages, or one that is there."""
    archive = source if isinstance(source, Path) else stream_of(out.with_suffix(".archive"), source).path
    jobs.backfill([spec], archive, out, jobs.pipeline_options([]), JobSettings(keep_ids=keep_ids, private=private))
    return out


def between(messages: Sequence[Message], start: int, end: int) -> list[Message]:
    """The messages that are published from one time on and before another, in minutes from the start."""
    return [each for each in messages if start * MINUTE <= each.publish_time - START < end * MINUTE]


def plain(pane: PaneHeader) -> PaneHeader:
    """A pane without what tells in which order panes have fired."""
    return replace(pane, pane=Pane(PaneKind.ON_TIME, 0), supersedes=None)


def panes(out: Path, few: Path | None = None) -> list[PaneHeader]:
    """The newest panes, with the counts of few reports; ``few`` is their folder."""
    (few or out).mkdir(exist_ok=True)
    return [plain(pane) for pane in newest(ResultsFolder(out, private=few or out).statistics())]


def estimates(out: Path) -> list[PaneHeader]:
    return [plain(estimate) for estimate in newest(ResultsFolder(out).estimates())]


def merge(
    folders: Sequence[Path], out: Path, *, private: Sequence[Path] = (), private_to: Path | None = None
) -> Merged:
    """Merge folders of this machine."""
    apart = None if private_to is None else str(private_to)
    return merge_places([*map(str, folders)], str(out), private=[*map(str, private)], private_to=apart)


def files(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of one backfill of all messages."""
    return backfill(sent(), tmp_path_factory.mktemp("whole") / "whole")


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The results of two backfills: of what was published before 200 minutes, and after."""
    folder = tmp_path_factory.mktemp("halves")
    return [
        backfill(between(sent(), 0, 200), folder / "first"),
        backfill(between(sent(), 200, 9999), folder / "second"),
    ]


@pytest.fixture
def without_ids(halves: list[Path], tmp_path: Path) -> list[Path]:
    """The same of jobs that keep no ids."""
    copies = [tmp_path / half.name for half in halves]
    for half, copy in zip(halves, copies, strict=True):
        shutil.copytree(half, copy, ignore=shutil.ignore_patterns("ids"))
    return copies


def test_an_outage_of_three_hours_that_is_backfilled_equals_a_run_without_it(tmp_path: Path) -> None:
    messages = sent()
    before, after = 2 * 60 + 7, 5 * 60 + 7  # from 7 minutes past an hour, so that two windows are in both folders
    whole = follow(messages, tmp_path / "whole")
    live = follow([*between(messages, 0, before), *between(messages, after, 9999)], tmp_path / "live")
    outage = backfill(between(messages, before, after), tmp_path / "outage")
    assert {pane.n for pane in panes(live)} != {pane.n for pane in panes(whole)}

    merged = merge([live, outage], tmp_path / "merged")

    assert panes(tmp_path / "merged") == panes(whole)
    assert estimates(tmp_path / "merged") == estimates(whole)
    assert merged.reports == N
    total = total_accounting(panes(tmp_path / "merged"))
    assert total == Accounting(received=N, counted=N)


def test_backfills_of_ranges_of_an_archive_equal_one_backfill(whole: Path, halves: list[Path], tmp_path: Path) -> None:
    for name, parts in (("merged", halves), ("reversed", halves[::-1])):
        merge(parts, tmp_path / name)
        assert panes(tmp_path / name) == panes(whole)
        assert estimates(tmp_path / name) == estimates(whole)


def test_a_merge_again_writes_the_same_files(halves: list[Path], tmp_path: Path) -> None:
    merge(halves, tmp_path / "merged")
    once = files(tmp_path / "merged")
    merge(halves, tmp_path / "merged")
    assert files(tmp_path / "merged") == once
    with pytest.raises(ResultsError, match="holds another merge; choose a new directory for --to, or remove it"):
        merge(halves[::-1], tmp_path / "merged")
    with pytest.raises(ResultsError, match="holds results; choose a new or empty directory for --to"):
        merge(halves, halves[0])


def test_the_record_says_of_each_window_where_it_is_from_and_why(halves: list[Path], tmp_path: Path) -> None:
    merge(halves, tmp_path / "merged")
    lines = [json.loads(line) for line in (tmp_path / "merged" / "provenance.jsonl").read_text().splitlines()]
    assert [line["folders"] for line in lines] == [[0], [0], [0], [0, 1], [1], [1], [1], [1]]
    assert {line["proof"] for line in lines} == {"one folder has the window", "no report is in two folders"}
    named = json.loads((tmp_path / "merged" / "merged.json").read_text())["folders"]
    assert [each["path"] for each in named] == [str(half) for half in halves]


def test_without_ids_windows_of_two_folders_are_refused_and_nothing_is_written(
    halves: list[Path], without_ids: list[Path], tmp_path: Path
) -> None:
    for one, other in ((without_ids[0], halves[1]), (halves[0], without_ids[1])):
        with pytest.raises(ResultsError) as refused:
            merge([one, other], tmp_path / "merged")
        assert str(refused.value) == (
            f"{one} and {other} both have the window of c v1 from 2026-01-01T12:00:00Z, and nothing shows that they"
            " have no report in common; run their jobs with --keep-ids, or backfill both sources into one directory"
        )
    assert not (tmp_path / "merged").exists()


def test_folders_that_overlap_are_refused(halves: list[Path], tmp_path: Path) -> None:
    other = backfill(between(sent(), 190, 400), tmp_path / "other")
    with pytest.raises(ResultsError, match=r"\d+ of their reports are the same, and each has others; backfill both"):
        merge([halves[0], other], tmp_path / "merged")


def test_ids_that_are_not_those_that_were_counted_show_nothing(halves: list[Path], tmp_path: Path) -> None:
    shutil.copytree(halves[0], tmp_path / "first")
    (path,) = (tmp_path / "first" / "ids").iterdir()
    path.rename(path.with_name("other.avro"))  # ids are a set, in whatever files
    merge([tmp_path / "first", halves[1]], tmp_path / "merged")
    shutil.copytree(halves[1] / "ids", tmp_path / "first" / "ids", dirs_exist_ok=True)
    with pytest.raises(ResultsError, match="nothing shows that they have no report in common"):
        merge([tmp_path / "first", halves[1]], tmp_path / "again")


def test_copies_without_ids_are_none_if_other_reports_may_be_alike(tmp_path: Path) -> None:
    few = backfill(sent()[:1], tmp_path / "few", keep_ids=False)
    shutil.copytree(few, tmp_path / "copy of few")
    with pytest.raises(ResultsError, match="nothing shows"):
        merge([few, tmp_path / "copy of few"], tmp_path / "of few")


def test_counts_of_few_reports_are_summed_and_stay_apart(tmp_path: Path) -> None:
    few = changed(limits={"min_reports": 150})
    messages = sent(11, few)
    parts = [
        backfill(between(messages, *of), tmp_path / str(of[0]), few, private=str(tmp_path / f"p{of[0]}"))
        for of in ((0, 215), (215, 9999))
    ]
    private = [tmp_path / "p0", tmp_path / "p215"]
    with pytest.raises(ResultsError, match=r"few: does not hold the counts of the .* reports of c v1 from"):
        merge(parts, tmp_path / "merged")
    merge(parts, tmp_path / "merged", private=private, private_to=tmp_path / "few")
    whole = backfill(messages, tmp_path / "whole", few)
    assert panes(tmp_path / "merged", tmp_path / "few") == panes(whole)
    assert not (tmp_path / "merged" / "few").exists()


@pytest.mark.parametrize(
    ("keys", "remedy"),
    [
        ({"window": {"size": "30m"}}, "give the spec a new version"),
        ({"window": {"size": "2h"}}, "a directory of its own"),
        ({"mechanism": {"name": "urr", "epsilon": 2}}, ""),
    ],
    ids=str,
)
def test_other_windows_and_device_halves_are_refused_by_their_remedy(
    keys: dict[str, Any], remedy: str, halves: list[Path], tmp_path: Path
) -> None:
    other = changed(**keys)
    with pytest.raises(ResultsError, match=rf"c v1 has another device half, or another window, .*{remedy}$"):
        merge([halves[0], backfill(sent(13, other), tmp_path / "other", other)], tmp_path / "merged")


@pytest.mark.nightly
def test_sliding_windows_are_merged_by_the_ids_of_their_slices(tmp_path: Path) -> None:
    sliding = changed(window={"size": "1h", "period": "30m"})
    messages = sent(14, sliding)
    whole = backfill(messages, tmp_path / "whole", sliding)
    parts = [backfill(between(messages, *of), tmp_path / str(of[0]), sliding) for of in ((0, 200), (200, 9999))]
    merge(parts, tmp_path / "merged")
    assert panes(tmp_path / "merged") == panes(whole)


def test_results_far_away_are_merged_and_written_far_away(
    uldp: Run, halves: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "FILES", {})
    for half in halves:
        memory.FILES.update({f"mem://b/{half.name}/{name}": content for name, content in files(half).items()})
    names = [f"mem://b/{half.name}" for half in halves]
    code, text, _ = uldp("merge", *names, "--to", "mem://b/merged")
    merge(halves, tmp_path / "merged")
    written = {name.removeprefix("mem://b/merged/"): content for name, content in memory.FILES.items()}
    there = {name: content for name, content in files(tmp_path / "merged").items() if name != "merged.json"}
    assert (code, text.startswith("mem://b/merged: ")) == (0, True)
    assert there.items() <= written.items()
    assert [each["path"] for each in json.loads(written["merged.json"])["folders"]] == names
    assert uldp("merge", *names, "--to", "mem://b/merged")[0] == 0
    for wrong, message in (
        (names[::-1], "mem://b/merged: holds another merge"),
        ([names[0], "mem://b/no"], "mem://b/no"),
    ):
        code, _, errors = uldp("merge", *wrong, "--to", "mem://b/merged")
        assert (code, message in errors) == (1, True)


def test_windows_are_in_memory_one_at_a_time(
    halves: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of one window is read once for copies, once for proofs, and once to write it; no more are held than 8."""
    read: list[Path] = []

    def counted(out: Path, kind: Any, path: Path, *arguments: Any) -> Any:
        read.append(path)
        return read_panes(out, kind, path, *arguments)

    monkeypatch.setattr(catalog, "read_panes", counted)
    merge(halves, tmp_path / "merged")
    assert read
    assert max(Counter(read).values()) <= 3


@pytest.mark.parametrize("private", [False, True])
def test_a_folder_that_is_not_there_is_named(uldp: Run, halves: list[Path], tmp_path: Path, private: bool) -> None:
    places = [*halves, "--private", "nowhere"] if private else [halves[0], "nowhere"]
    code, out, errors = uldp("merge", *places, "--to", tmp_path / "merged")
    assert (code, out) == (1, "")
    assert errors.startswith("error: nowhere: no such file or directory; give a directory that holds results")
    assert not (tmp_path / "merged").exists()
