"""Windows that a stopped job leaves open, and windows that count no report."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from tests import build
from tests.build import HOUR, MINUTE, START
from tests.pane_files import estimate_file, statistic_file
from uldp.pipelines.jobs import local
from uldp.pipelines.jobs.progress import summary
from uldp.pipelines.jobs.written import mark_open_windows
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.pipelines.results.selection import Selection
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.durable_files import write_file
from uldp.transforms.io.local.journal import JOURNAL, append_entries, decode_entry
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.results.signing import line_of_pane
from uldp.transforms.io.results.write import write_estimates, write_statistics


def pane(hour: int, kind: str, revision: int, n: int) -> Statistic:
    return build.pane([n, 0], kind, revision, start=hour * HOUR)


def save(out: Path, support: Statistic) -> None:
    estimate = build.estimate(support, [1.0, 0.0], [0.1, 0.1])
    for name, content in (statistic_file(support), estimate_file(estimate)):
        write_file(str(out / name), content)


def test_windows_that_did_not_fire_on_time_are_incomplete(tmp_path: Path) -> None:
    ended = [pane(0, "early", 0, 5), pane(0, "on_time", 1, 8)]
    still_open = [pane(1, "early", 0, 3), replace(pane(1, "early", 1, 4), flags=("busy_sender",))]
    for support in (*ended, *still_open):
        save(tmp_path, support)
    for _ in range(2):  # to do it twice is to do it once
        assert mark_open_windows(tmp_path) == 1
    flags = [(), ("busy_sender", "incomplete")]
    assert [support.flags for support in newest(ResultsFolder(tmp_path).statistics())] == flags
    assert [estimate.flags for estimate in newest(ResultsFolder(tmp_path).estimates())] == flags
    assert len(ResultsFolder(tmp_path).statistics()) == len(ResultsFolder(tmp_path).estimates()) == 4


def bundle(out: Path, panes: list[Statistic]) -> list[Path]:
    """Write the panes of a bundle and their estimates as a job does; returns the files that are new or changed."""
    before = {path: path.read_bytes() for path in out.rglob("*.avro")}
    estimates = [build.estimate(each, [1.0, 0.0], [0.1, 0.1]) for each in panes]
    for fn, elements in ((write_statistics(str(out), str(out)), panes), (write_estimates(str(out)), estimates)):
        fn.start_bundle()
        for element in elements:
            fn.process(element)
        fn.finish_bundle()
    return sorted(path for path in out.rglob("*.avro") if before.get(path) != path.read_bytes())


def flags(out: Path) -> dict[str, set[tuple[str, ...]]]:
    """The flags of the newest panes and estimates, by collection."""
    found: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    folder = ResultsFolder(out)
    for each in (*newest(folder.statistics()), *newest(folder.estimates())):
        found[each.collection].add(each.flags)
    return found


def of_each(collections: int, kind: str, revision: int, n: int) -> list[Statistic]:
    return [build.pane([n, 0], kind, revision, start=HOUR, key=(f"c-{number}", 1)) for number in range(collections)]


def test_panes_that_share_a_file_are_incomplete_too(tmp_path: Path) -> None:
    bundle(tmp_path, of_each(40, "early", 0, 3))
    bundle(tmp_path, of_each(40, "early", 1, 5))
    bundle(tmp_path, of_each(35, "on_time", 2, 8))
    for _ in range(2):  # to do it twice is to do it once
        assert mark_open_windows(tmp_path) == 5
    ended = {f"c-{number}": {()} for number in range(35)}
    assert flags(tmp_path) == ended | {f"c-{number}": {("incomplete",)} for number in range(35, 40)}
    assert len(ResultsFolder(tmp_path).statistics()) == len(ResultsFolder(tmp_path).estimates()) == 115
    # The job runs again, and the same panes come again.
    append_entries(tmp_path / JOURNAL, map(decode_entry, map(line_of_pane, of_each(40, "early", 1, 5))))
    assert {each for found in flags(tmp_path).values() for each in found} == {()}


def test_no_pane_is_marked_beside_a_damaged_file_of_its_window(tmp_path: Path) -> None:
    """The damaged file may be the pane on time."""
    bundle(tmp_path, of_each(40, "early", 0, 3))
    files = bundle(tmp_path, [build.pane([8, 0], "on_time", 1, start=HOUR, key=("c-0", 1))])
    for path in files:
        path.write_bytes(path.read_bytes()[:-4])
    assert mark_open_windows(tmp_path) == 39


#: Windows that late or rejected reports name.
WINDOWS = 200
SPEC = build.spec(domain={"size": 5000}, mechanism={"name": "identity"}, window={"size": "1m"})


def message(number: int, *, minute: int, symbol: int, published: int) -> Message:
    return build.message(build.report(number, symbol, START + minute * MINUTE), published)


@pytest.fixture(params=["late", "rejected"])
def fate(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def out(fate: str, tmp_path: Path) -> Path:
    """Results of a stream with one counted report, and one that is late or rejected for each of the other windows."""
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    end = START + WINDOWS * MINUTE
    stream.append([message(0, minute=WINDOWS, symbol=1, published=end)])
    symbol = 1 if fate == "late" else 5000
    published = end + MINUTE if fate == "late" else end
    stream.append([message(1 + minute, minute=minute, symbol=symbol, published=published) for minute in range(WINDOWS)])
    stream.close()
    options = local.pipeline_options([])
    local.follow([SPEC], stream.path, tmp_path / "out", options)
    return tmp_path / "out"


def test_they_share_files_and_keep_the_accounting_law(out: Path, fate: str) -> None:
    panes = newest(ResultsFolder(out).statistics())
    once = Accounting(received=1, **{fate: 1})
    assert [pane.accounting for pane in panes] == [once] * WINDOWS + [Accounting(1, 1)]
    assert sum(len(pane.cells) for pane in panes) == WINDOWS + 5000
    files = list((out / "counts").rglob("*.avro"))
    assert len(files) < 20
    text = summary(out)
    assert f"c v1: {WINDOWS + 1} windows, {WINDOWS + 1} received = 1 counted" in text
    assert f"in all: {WINDOWS + 1} received = 1 counted" in text


def test_they_are_shown_without_an_estimate(out: Path) -> None:
    estimates, unpublished, *_ = ResultsFolder(out).current()
    assert (len(estimates), len(unpublished)) == (1, WINDOWS)
    estimates, unpublished, *_ = ResultsFolder(out).current(Selection(last=2))
    assert (len(estimates), len(unpublished)) == (1, 1)
