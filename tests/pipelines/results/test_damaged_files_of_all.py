"""Damaged and false files of panes of several collections: what they may hold is left out, and nothing else."""

import io
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.build import HOUR, START
from tests.pipelines.results.files_of_all import NAMES, pane, results, save_of_all, save_own
from uldp.pipelines.live.headers import Headers
from uldp.pipelines.live.watch import Watch
from uldp.pipelines.results.compact import compact
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.kept import Kept
from uldp.pipelines.results.selection import ALL, Selection
from uldp.schemas.codec.blocks import Container
from uldp.schemas.codec.columnar import write_varint
from uldp.schemas.pane import Signals
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.folders import COUNTS
from uldp.transforms.io.results import pane_files
from uldp.transforms.io.results.names import PaneFileName
from uldp.transforms.io.results.pane_files import STATISTICS, EncodedPane

pytestmark = pytest.mark.usefixtures("small_blocks")


def windows(out: Path, damaged: list[ResultsError]) -> set[tuple[str, int]]:
    found = ResultsFolder(out, damaged.append).current()
    return {(each.collection, (each.window_start - START) // HOUR) for each in found.estimates}


def damaged_results(out: Path) -> tuple[dict[str, Path], set[tuple[str, int]]]:
    """Windows of three hours; of the second one, two collections have a newer pane in another file, the first one."""
    results(out)
    everything = [pane(name, hour, 0, "early") for name in NAMES for hour in range(3)]
    save_of_all(out, everything)
    save_own(out, [pane("c", 2)])
    paths = save_of_all(out, [pane(name, 1) for name in ("c", "d")])
    return paths, {(name, hour) for name in NAMES for hour in range(3)}


@pytest.mark.parametrize("kind", [COUNTS, "mle"])
def test_a_file_that_was_cut_hides_the_windows_that_it_had(kind: str, tmp_path: Path) -> None:
    paths, everything = damaged_results(tmp_path)
    paths[kind].write_bytes(paths[kind].read_bytes()[:-9])
    damaged: list[ResultsError] = []
    assert windows(tmp_path, damaged) == everything - {("c", 1), ("d", 1)}
    (error,) = damaged
    assert str(error).startswith(f"{paths[kind]}: damaged, or not an Avro file of schema ")
    if kind == COUNTS:
        newest = Headers(tmp_path, Watch(tmp_path)).newest()
        assert {(key[0], (key[2] - START) // HOUR) for key in newest} == everything - {("c", 1), ("d", 1)}
        kept = Kept.of(ResultsFolder(tmp_path, damaged.append), ALL)
        assert len(list(kept.statistics(("d", 1)))) == 2


@pytest.mark.parametrize("kind", [COUNTS, "mle"])
def test_a_file_without_a_header_hides_the_time_of_its_folder(kind: str, tmp_path: Path) -> None:
    paths, everything = damaged_results(tmp_path)
    paths[kind].write_bytes(b"damaged")
    damaged: list[ResultsError] = []
    assert windows(tmp_path, damaged) == {each for each in everything if each[1] != 1}
    assert len(damaged) == 1


def rename(path: Path, **changes: Any) -> None:
    name = PaneFileName.read(path.name)
    assert name is not None
    path.rename(path.with_name(str(name._replace(**changes))))


@pytest.mark.parametrize(
    "changes",
    [
        {"of": ("c", 1)},
        {"start": START + HOUR},
        {"end": START + 3 * HOUR},
        {"number": "0" * 32},
        {"number": "000001"},
        {"estimator": "mle"},
    ],
    ids=str,
)
def test_a_file_under_the_name_of_another_is_damage(changes: dict[str, Any], tmp_path: Path) -> None:
    rename(save_of_all(results(tmp_path), [pane("c", 0), pane("d", 1)])[COUNTS], **changes)
    with pytest.raises(ResultsError, match="damaged"):
        ResultsFolder(tmp_path).panes()


def test_a_file_under_a_name_that_no_job_gives_is_damage(tmp_path: Path) -> None:
    path = save_of_all(results(tmp_path), [pane("c", 0)])[COUNTS]
    path.rename(path.with_name("copy.avro"))
    with pytest.raises(ResultsError, match="under a name that no job gives"):
        ResultsFolder(tmp_path).panes()


@pytest.mark.parametrize("name", ["../../specs", "c/../d", "a" * 65, "..", "", "C", "c\n"])
def test_no_path_is_made_of_a_name_that_no_collection_has(name: str, tmp_path: Path) -> None:
    save_of_all(results(tmp_path), [pane("d", 0), replace(pane("c", 0), collection=name)])
    for read in (ResultsFolder(tmp_path).panes, partial(compact, tmp_path)):
        with pytest.raises(ResultsError, match="damaged"):
            read()


#: What may be wrong in the headers of panes that stand in the header of their file.
LIES: dict[str, Callable[[list[bytes]], object]] = {
    "one too few": list.pop,
    "one too many": lambda headers: headers.append(headers[-1]),
    "nothing": list.clear,
    "another order": list.reverse,
    "no header": lambda headers: headers.__setitem__(0, b"none"),
    "a byte too many": lambda headers: headers.append(b"."),
    "another count": lambda headers: headers.__setitem__(0, EncodedPane.encode(STATISTICS, pane("c", 0, n=9)).bare),
    "another collection": lambda headers: headers.__setitem__(0, EncodedPane.encode(STATISTICS, pane("d", 0)).bare),
}


def forge(path: Path, change: Callable[[list[bytes]], object], panes: list[Statistic], *, signed: bool) -> None:
    """Change the headers of panes in a file; by somebody who knows how to sign them, or not."""
    content = path.read_bytes()
    container = Container.open(io.BytesIO(content))
    stored = container.metadata[pane_files._KEY]
    headers = [each.bare for each in sorted(EncodedPane.encode(STATISTICS, each) for each in panes)]
    assert stored.decode() == pane_files._stored(headers, container.sync_marker)
    change(headers)
    forged = pane_files._stored(headers, container.sync_marker if signed else bytes(16)).encode()
    path.write_bytes(content.replace(_metadata(stored), _metadata(forged)))


def _metadata(value: bytes) -> bytes:
    return pane_files._KEY.encode() + write_varint(len(value)) + value


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("lie", LIES)
def test_false_headers_are_damage(lie: str, signed: bool, tmp_path: Path) -> None:
    panes = [pane(name, hour) for name in NAMES for hour in range(5)]
    path = save_of_all(results(tmp_path), panes)[COUNTS]
    forge(path, LIES[lie], panes, signed=signed)
    for selection in (ALL, Selection(last=5), Selection(since=START + 2 * HOUR), Selection(collection="c")):
        damaged: list[ResultsError] = []
        folder = ResultsFolder(tmp_path, damaged.append)
        folder.current(selection)
        if damaged:
            assert str(damaged[0]).startswith(f"{path}: damaged, or not an Avro file of schema statistic (")
        else:  # what was forged is not asked for
            assert lie in ("another count", "another collection")
    with pytest.raises(ResultsError, match="damaged"):
        ResultsFolder(tmp_path).panes()


def test_headers_that_do_not_fit_into_that_of_a_file_are_in_two() -> None:
    """No two panes are of one collection, and all names are as long as they may be, and random."""
    names = [zlib.crc32(str(number).encode()).to_bytes(4, "big").hex() * 8 for number in range(10_000)]
    signals = [tuple(np.random.default_rng(number).integers(0, 1 << 40, 24).tolist()) for number in range(100)]
    one = pane("c", 0)
    panes = [
        EncodedPane.encode(
            STATISTICS, replace(one, collection=name, signals=Signals(signals[i % 100], signals[i % 99]))
        )
        for i, name in enumerate(names)
    ]
    files = list(pane_files.pane_files(STATISTICS, panes, None))
    found = 0
    for name, content in files:
        read = PaneFileName.read(name.partition("/")[2])
        assert read is not None
        found += len(pane_files.headers_in(Container.open(io.BytesIO(content)), read))
    assert found == 10_000
    assert len(files) <= 4
