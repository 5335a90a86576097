"""Damaged and false files of panes of several collections: what they may hold is left out, and nothing else."""

import base64
import io
import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.build import HOUR, START
from tests.pipelines.results.files_of_all import NAMES, pane, results, save, save_of_all, save_own
from uldp.pipelines.live.headers import Headers
from uldp.pipelines.live.watch import Watch
from uldp.pipelines.results.compact import compact
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.kept import Kept
from uldp.pipelines.results.selection import ALL, Selection
from uldp.schemas.codec.blocks import Container, ContainerError
from uldp.schemas.codec.columnar import write_varint
from uldp.schemas.statistic import counts_to_avro
from uldp.transforms.io import window_index
from uldp.transforms.io.durable_files import encode_record
from uldp.transforms.io.folders import COUNTS
from uldp.transforms.io.results import statistic_file
from uldp.transforms.io.window_index import index_of, indexed_of_several, place_of

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


def test_a_damaged_file_of_a_window_hides_its_older_pane_in_another_file(tmp_path: Path) -> None:
    save_of_all(results(tmp_path), [pane(name, 0, 0, "early") for name in ("c", "d")])
    path = save(tmp_path, statistic_file(pane("c", 0)))
    path.write_bytes(path.read_bytes()[:-4])
    damaged: list[ResultsError] = []
    assert [each.collection for each in ResultsFolder(tmp_path, damaged.append).panes()] == ["d"]
    assert len(damaged) == 1
    headers = Headers(tmp_path, Watch(tmp_path))
    assert [key[0] for key in headers.newest()] == ["d"]
    assert headers.fired().damaged == 1


@pytest.mark.parametrize("kind", [COUNTS, "mle"])
def test_a_file_without_a_header_hides_the_time_of_its_folder(kind: str, tmp_path: Path) -> None:
    paths, everything = damaged_results(tmp_path)
    paths[kind].write_bytes(b"damaged")
    damaged: list[ResultsError] = []
    assert windows(tmp_path, damaged) == {each for each in everything if each[1] != 1}
    assert len(damaged) == 1


def test_a_pane_of_another_time_than_its_folder_is_damage(tmp_path: Path) -> None:
    path = save_of_all(results(tmp_path), [pane("c", 0), pane("d", 1)])[COUNTS]
    (tmp_path / "counts/all/20260101T090000Z--20260101T100000Z").mkdir()
    path.rename(tmp_path / "counts/all/20260101T090000Z--20260101T100000Z" / path.name)
    with pytest.raises(ResultsError, match="damaged"):
        ResultsFolder(tmp_path).panes()


@pytest.mark.parametrize("name", ["../../specs", "c/../d", "a" * 65])
def test_no_path_is_made_of_a_name_that_no_collection_has(name: str, tmp_path: Path) -> None:
    save_of_all(results(tmp_path), [pane("d", 0), replace(pane("c", 0), collection=name)])
    with pytest.raises(ResultsError, match="damaged"):
        ResultsFolder(tmp_path).panes()


@pytest.mark.parametrize("name", ["../../x/counts/c", "/x/counts/c", "c/d", "..", "", "C", "c\n"])
def test_compact_follows_no_path_in_an_index(name: str, tmp_path: Path) -> None:
    """Whoever can write a file into a results directory has no other directory compacted."""
    other, out = results(tmp_path / "x"), results(tmp_path / "out")
    for hour in range(3):
        save(other, statistic_file(pane("c", hour)))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.avro")}
    name = f"{tmp_path}{name}" if name.startswith("/") else name
    newest = pane("d", 60)
    _, content = indexed_of_several(
        "statistic", [((name, 1), place_of(newest), encode_record("statistic", counts_to_avro(newest)))]
    )
    container = Container.open(io.BytesIO(content))
    with pytest.raises(ContainerError, match="its index of windows is damaged"):
        index_of(container)
    folder = out / "counts/all/20260101T000000Z--20270101T000000Z"
    folder.mkdir(parents=True)
    (folder / "forged.avro").write_bytes(content)
    assert compact(out).joined == 0
    assert {path: path.read_bytes() for path in other.rglob("*.avro")} == before


def forge(path: Path, change: Callable[[list[Any]], object], *, signed: bool) -> None:
    """Change the index of a file; by somebody who knows how to sign it, or not."""
    content = path.read_bytes()
    container = Container.open(io.BytesIO(content))
    stored = container.metadata["uldp.collections"]
    rows = json.loads(zlib.decompress(base64.b64decode(stored[16:])))
    change(rows)
    text = base64.b64encode(zlib.compress(json.dumps(rows).encode())).decode()
    digest = window_index._signed(text, container.sync_marker) if signed else stored[:16].decode()
    forged = content.replace(_metadata(stored), _metadata(f"{digest}{text}".encode()))
    assert forged != content
    path.write_bytes(forged)


def _metadata(value: bytes) -> bytes:
    return b"uldp.collections" + write_varint(len(value)) + value


#: The number of runs of each block, the places of windows, and the columns of runs.
SIZES, PLACES, RUNS = range(3)
COLLECTION, VERSION, N, WINDOWS, FIRST, LAST = range(6)
LIES: dict[str, Callable[[list[Any]], object]] = {
    "a block too few": lambda index: [index[SIZES].pop(), *(column.pop() for column in index[RUNS])],
    "a block too many": lambda index: [index[SIZES].append(1), *(column.append(column[-1]) for column in index[RUNS])],
    "nothing": list.clear,
    "no run": lambda index: [part.clear() for part in (index[SIZES], *index[RUNS])],
    "an empty block": lambda index: index[SIZES].insert(0, 0),
    "a longer block": lambda index: index[SIZES].__setitem__(0, index[SIZES][0] + 1),
    "another collection": lambda index: index[RUNS][COLLECTION].__setitem__(-1, "z"),
    "another version": lambda index: index[RUNS][VERSION].__setitem__(-1, 9),
    "another number of panes": lambda index: index[RUNS][N].__setitem__(0, 7),
    "no windows": lambda index: index[RUNS][WINDOWS].__setitem__(0, 0),
    "later windows": lambda index: index[PLACES].__setitem__(-1, [START + 90 * HOUR] * 2),
    "places in another order": lambda index: index[PLACES].reverse(),
    "a place that is not there": lambda index: index[RUNS][LAST].__setitem__(-1, 9),
    "a place from the end": lambda index: index[RUNS][FIRST].__setitem__(0, -5),
    "the runs in another order": lambda index: [column.reverse() for column in index[RUNS]],
    "two runs of a collection": lambda index: [
        index[SIZES].__setitem__(0, index[SIZES][0] + 1),
        *(column.insert(0, column[0]) for column in index[RUNS]),
    ],
    "a number": lambda index: index[RUNS][COLLECTION].__setitem__(0, 1),
    "true": lambda index: index[RUNS][N].__setitem__(0, True),
    "a short column": lambda index: index[RUNS][WINDOWS].pop(),
    "a column too few": lambda index: index[RUNS].pop(),
    "a version of text": lambda index: index[RUNS][VERSION].__setitem__(0, "1"),
    "no version": lambda index: index[RUNS][VERSION].__setitem__(0, 0),
    "a version that is too large": lambda index: index[RUNS][VERSION].__setitem__(-1, 1 << 31),
    "a text": lambda index: index[PLACES].__setitem__(0, ["1", 2]),
}


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("lie", LIES)
def test_a_false_index_is_damage(lie: str, signed: bool, tmp_path: Path) -> None:
    path = save_of_all(results(tmp_path), [pane(name, hour) for name in NAMES for hour in range(5)])[COUNTS]
    forge(path, LIES[lie], signed=signed)
    selections = [ALL, Selection(last=5), Selection(since=START + 4 * HOUR)]
    if lie != "another collection":  # nobody reads a block of it who asks for one that is there
        selections.append(Selection(collection="e-2"))
    for selection in selections:
        with pytest.raises(ResultsError) as error:
            ResultsFolder(tmp_path).current(selection)
        assert str(error.value).startswith(f"{path}: damaged, or not an Avro file of schema statistic (")


def test_an_index_that_inflates_without_end_is_damage(tmp_path: Path) -> None:
    path = save_of_all(results(tmp_path), [pane("c", 0), pane("d", 0)])[COUNTS]
    forge(path, lambda index: index[RUNS].append(["x" * (1 << 23)]), signed=True)
    with pytest.raises(ResultsError, match="its index of windows is damaged"):
        ResultsFolder(tmp_path).panes()


def test_the_index_of_the_most_panes_of_a_file_fits_into_its_header() -> None:
    """No two panes are of one collection, and all names are as long as they may be, and random."""
    encoded = encode_record("statistic", pane("c", 0).to_avro())
    names = [zlib.crc32(str(number).encode()).to_bytes(4, "big").hex() * 8 for number in range(10_000)]
    panes = [((name, number + 1), (START + number * 7919, START), encoded) for number, name in enumerate(names)]
    _, content = indexed_of_several("statistic", panes)
    blocks = index_of(Container.open(io.BytesIO(content)))
    assert blocks is not None
    assert sum(run.held.panes for runs in blocks for run in runs) == 10_000
