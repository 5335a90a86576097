"""Files of panes of several collections: every reader finds what it finds in a file for each pane."""

import base64
import io
import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR, START
from tests.pipelines.results.samples import folder_of
from uldp.pipelines.cli import cli
from uldp.pipelines.live.headers import Headers
from uldp.pipelines.live.watch import Watch
from uldp.pipelines.merge.folders import Merging
from uldp.pipelines.results.compact import compact
from uldp.pipelines.results.files import ListedFile, ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.kept import Kept
from uldp.pipelines.results.newest import newest
from uldp.pipelines.results.prune import prune
from uldp.pipelines.results.selection import ALL, Selection
from uldp.schemas.codec import blocks as blocks_module
from uldp.schemas.codec.blocks import Container, ContainerError
from uldp.schemas.codec.columnar import write_varint
from uldp.schemas.codec.inflate import inflate
from uldp.schemas.estimate import Estimate
from uldp.schemas.flags import Flag
from uldp.schemas.pane import PaneHeader
from uldp.schemas.statistic import Statistic, counts_to_avro
from uldp.transforms.io import window_index
from uldp.transforms.io.durable_files import encode_record, write_file
from uldp.transforms.io.folders import COUNTS, FEW
from uldp.transforms.io.results import estimate_file, file_of_all, statistic_file
from uldp.transforms.io.window_index import index_of, indexed_of_several, place_of

NAMES = ("c", "d", "e-2")
RR = {"name": "rr", "epsilon": 1.0}
SPECS = {(name, 1): build.spec(collection=name, domain={"size": 2}, mechanism=RR) for name in NAMES}
#: The index of a window, a revision and its n, and the number of the file that holds it.
Fired = tuple[str, int, int, int, int]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two panes of counts fill a block."""
    monkeypatch.setattr(window_index, "BLOCK_SIZE_OF_SEVERAL", 100)


def pane(name: str, hour: int, revision: int = 1, kind: str = "on_time", n: int = 0, **fields: Any) -> Statistic:
    cells = [n or revision + 1, 0]
    digest = SPECS[name, 1].device_digest
    return build.pane(cells, kind, revision, start=START + hour * HOUR, key=(name, 1), device_digest=digest, **fields)


def estimate(support: Statistic, estimator: str = "mle") -> Estimate:
    return build.estimate(support, [1.0, 0.0], [0.1, 0.1], estimator=estimator)


def save(out: Path, named: tuple[str, bytes], *, private: bool = False) -> Path:
    write_file(str(out / named[0]), named[1], private=private)
    return out / named[0]


def save_own(out: Path, panes: Iterable[Statistic]) -> None:
    """Save a file for each pane, and for its estimate by each estimator."""
    for each in panes:
        if each.apart:
            save(out, statistic_file(each, FEW), private=True)
            save(out, statistic_file(PaneHeader(**each.header())))
            continue
        save(out, statistic_file(each))
        for estimator in ("mle", "em"):
            save(out, estimate_file(estimate(each, estimator)))


def save_of_all(out: Path, panes: Sequence[Statistic]) -> dict[str, Path]:
    """Save a file of all panes of each kind; returns them by kind and estimator."""

    def records(schema: str, of: Iterable[PaneHeader]) -> list[tuple[tuple[str, int], tuple[int, int], bytes]]:
        value = counts_to_avro if schema == "statistic" else Estimate.to_avro
        return [(each.key[:2], place_of(each), encode_record(schema, value(each))) for each in of]  # type: ignore[arg-type]

    kinds: dict[str, list[PaneHeader]] = {
        COUNTS: [PaneHeader(**each.header()) if each.apart else each for each in panes],
        FEW: [each for each in panes if each.apart],
    }
    paths = {
        kind: save(out, file_of_all(kind, records("statistic", of), "statistic"), private=kind == FEW)
        for kind, of in kinds.items()
        if of
    }
    for estimator in ("mle", "em"):
        if of := [estimate(each, estimator) for each in panes if not each.apart]:
            name = file_of_all("estimates", records("estimate", of), "estimate", f".{estimator}.avro")
            paths[estimator] = save(out, name)
    return paths


def results(out: Path) -> Path:
    folder_of(out, specs=SPECS)
    (out / "job.json").write_text("{}")
    return out


PANES = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 8), st.integers(0, 2), st.booleans(), st.integers(0, 3)),
    min_size=1,
    max_size=30,
    unique_by=lambda each: each[:3],
)
SELECTIONS = st.builds(
    Selection,
    collection=st.none() | st.sampled_from(NAMES),
    since=st.none() | st.integers(-1, 9).map(lambda hour: START + hour * HOUR),
    until=st.none() | st.integers(-1, 9).map(lambda hour: START + hour * HOUR),
    last=st.none() | st.integers(1, 4),
    estimator=st.none() | st.sampled_from(["mle", "em"]),
)
KINDS = ("early", "on_time", "late")


def both(root: Path, fired: list[tuple[str, int, int, bool, int]]) -> tuple[Path, Path]:
    """Save panes in files of their own, and in files of several collections, but those of number 0."""
    one, other = results(root / "one"), results(root / "other")
    files: dict[int, list[Statistic]] = {}
    for name, hour, revision, apart, number in fired:
        flags = (Flag.FEW_REPORTS.value,) if apart else ()
        files.setdefault(number, []).append(pane(name, hour, revision, KINDS[revision], flags=flags))
    for number, panes in files.items():
        save_own(one, panes)
        if number:
            save_of_all(other, panes)
        else:
            save_own(other, panes)
    return one, other


def found(out: Path, selection: Selection) -> list[list[str]]:
    """What the readers of results find."""
    folder = ResultsFolder(out, private=out)
    current, published, kept = folder.current(selection), folder.published(selection), Kept.of(folder, selection)
    statistics = [
        repr(each)
        for each in current.statistics.values()
        if each.key in {pane.key for pane in (*current.estimates, *current.unpublished)}
    ]
    return [
        list(map(repr, current.estimates)),
        list(map(repr, current.unpublished)),
        list(map(repr, current.held)),
        [repr(current.statistic_of(each)) for each in current.estimates],
        sorted(map(repr, published)),
        [repr(each) for key in sorted(kept.versions) for each in kept.statistics(key)],
        sorted(map(repr, kept.left_out.items())),
        statistics if selection == ALL and not statistics else [],
    ]


@settings(max_examples=40, deadline=None)
@given(PANES, SELECTIONS)
def test_readers_find_the_same(
    tmp_path_factory: pytest.TempPathFactory, fired: list[tuple[str, int, int, bool, int]], selection: Selection
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(window_index, "BLOCK_SIZE_OF_SEVERAL", 100)
        one, other = both(tmp_path_factory.mktemp("out"), fired)
    assert found(other, selection) == found(one, selection)
    assert found(other, ALL) == found(one, ALL)
    panes = [
        sorted(map(repr, (*folder.panes(), *folder.statistics(), *folder.estimates())))
        for folder in (ResultsFolder(one, private=one), ResultsFolder(other, private=other))
    ]
    assert panes[0] == panes[1]
    headers = [Headers(out, Watch(out)) for out in (one, other)]
    assert headers[0].newest() == headers[1].newest()
    assert headers[0].fired().written.keys() == headers[1].fired().written.keys()
    parts = []
    for out in (one, other):
        merging = Merging(str(out), out, (out,))
        parts.append([repr(merging.part(0, key, None)) for key in sorted(merging.windows)])
    assert parts[0] == parts[1]


@pytest.mark.parametrize("options", [[], ["--last", "2"], ["--collection", "d"], ["--estimator", "em"]])
def test_show_prints_the_same_bytes(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fired = [(name, hour, revision, False, 1 + hour % 3) for name in NAMES for hour in range(5) for revision in (0, 1)]
    printed = []
    for out in both(tmp_path, fired):
        cli.main(["show", str(out), "--json", *options], standalone_mode=False)
        printed.append(capsys.readouterr())
    assert printed[0] == printed[1]
    assert printed[0].out.count("\n") >= 2


def test_blocks_of_another_collection_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_of_all(results(tmp_path), [pane(name, hour) for name in NAMES for hour in range(20)])
    inflated: list[int] = []

    def counted(codec: str, block: bytes, bound: int) -> bytes:
        inflated.append(len(block))
        return inflate(codec, block, bound)

    monkeypatch.setattr(blocks_module, "inflate", counted)
    folder = ResultsFolder(tmp_path)
    assert len(folder.current(Selection(collection="d", estimator="mle")).estimates) == 20
    one = len(inflated)
    assert len(folder.current(Selection(collection="d", estimator="mle", last=1)).estimates) == 1
    last = len(inflated) - one
    assert len(folder.current(Selection(estimator="mle")).estimates) == 60
    assert last <= 4
    assert one <= (len(inflated) - one - last) / 3 + 4


def test_files_of_another_time_are_not_opened(tmp_path: Path) -> None:
    results(tmp_path)
    for hour in range(4):
        save_of_all(tmp_path, [pane(name, hour) for name in NAMES])
    first = sorted((tmp_path / "counts" / "all").iterdir())[0]
    (path,) = first.iterdir()
    path.write_bytes(b"opened")
    folder = ResultsFolder(tmp_path)
    assert len(folder.current(Selection(since=START + HOUR, estimator="mle")).estimates) == 9
    with pytest.raises(ResultsError, match="damaged"):
        folder.current(Selection(since=START + HOUR - 1))


# Damage, and lies.


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


# What is removed and moved.


def test_a_file_is_removed_when_all_its_panes_are_replaced(tmp_path: Path) -> None:
    results(tmp_path)
    early = save_of_all(tmp_path, [pane(name, 0, 0, "early") for name in NAMES])
    save_of_all(tmp_path, [pane(name, 0) for name in ("c", "d")])
    assert prune(tmp_path, before=0).panes == 0
    save_own(tmp_path, [pane("e-2", 0)])
    assert prune(tmp_path, before=0).panes == len(early)
    assert not any(path.exists() for path in early.values())
    assert len(ResultsFolder(tmp_path).panes()) == 3


def history(out: Path) -> Path:
    """Three days of early panes and panes on time; those of an hour in a file, but some of one collection."""
    results(out)
    for hour in range(0, 72, 6):
        names = NAMES if hour % 5 else NAMES[1:]
        few = (Flag.FEW_REPORTS.value,) if hour % 18 == 0 else ()
        save_of_all(out, [pane(name, hour, 0, "early", flags=few) for name in names])
        save_of_all(out, [pane(name, hour, flags=few) for name in names])
        if names != NAMES:
            save_own(out, [pane("c", hour, 0, "early"), pane("c", hour)])
    return out


def everything(out: Path) -> list[str]:
    folder = ResultsFolder(out, private=out)
    return sorted(map(repr, (*folder.panes(), *folder.estimates(), *folder.statistics())))


def days_left(out: Path) -> set[str]:
    """The days of files of several collections, but not of those of few reports, whose last windows are older."""
    return {path.parent.name[:8] for kind in (COUNTS, "estimates") for path in out.glob(f"{kind}/all/*/*.avro")}


def test_compact_moves_panes_to_their_collections(tmp_path: Path) -> None:
    before = everything(history(tmp_path))
    planned = compact(tmp_path, dry_run=True)
    assert everything(tmp_path) == before
    assert compact(tmp_path) == planned
    assert everything(tmp_path) == before
    kinds = {path.parents[2].name for path in tmp_path.glob("*/c-v1/shared/*")}
    assert kinds == {COUNTS, FEW, "estimates"}
    assert days_left(tmp_path) == {"20260103", "20260104"}
    assert not [path for path in tmp_path.rglob("*") if path.is_dir() and not any(path.iterdir())]
    assert all(not path.stat().st_mode & 0o077 for path in tmp_path.glob("few/*/*/*"))
    left = {path: path.read_bytes() for path in tmp_path.rglob("*.avro")}
    assert compact(tmp_path).sources == 0
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.avro")} == left


@pytest.mark.parametrize("max_bytes", [1, 3_000])
def test_compact_moves_in_bounded_parts(max_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = everything(history(tmp_path))
    monkeypatch.setattr("uldp.pipelines.results.compact.MAX_BYTES", max_bytes)
    for _ in range(2):  # a file of early panes may come before that of the panes on time
        compact(tmp_path)
        assert everything(tmp_path) == before
    assert days_left(tmp_path) == {"20260103", "20260104"}


@pytest.mark.parametrize("killed", [0, 1, 5, 20, 35])
def test_a_killed_compact_loses_nothing(killed: int, tmp_path: Path) -> None:
    before = everything(history(tmp_path))
    left, remove = iter(range(killed)), ListedFile.remove

    def remove_or_die(file: ListedFile) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        remove(file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ListedFile, "remove", remove_or_die)
        with pytest.raises(KeyboardInterrupt):
            compact(tmp_path)
    assert set(everything(tmp_path)) == set(before)
    compact(tmp_path)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("names", [("aaa", "aab"), ("0-x", "aaa"), ("mmm", "zzz")])
def test_prune_beside_compact_leaves_a_copy_of_each_pane(names: tuple[str, str], tmp_path: Path) -> None:
    """Whether the name of a collection comes before ``all`` or after it."""
    results(tmp_path)
    for hours in ((0, 1), (60,)):
        panes = [replace(pane("c", hour), collection=name) for name in names for hour in hours]
        save_of_all(tmp_path, panes)
    before = everything(tmp_path)
    prune_before_compact_removes(tmp_path)
    assert everything(tmp_path) == before
    assert not list(tmp_path.glob("*/all/20260102*/*"))


def prune_before_compact_removes(out: Path) -> None:
    """Run compact, and prune once it has written its first files."""
    remove, pruned = ListedFile.remove, list[object]()

    def prune_and_remove(file: ListedFile) -> None:
        if not pruned:
            pruned.append(None)
            prune(out, before=0)
        remove(file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ListedFile, "remove", prune_and_remove)
        compact(out)
    assert pruned


@pytest.mark.parametrize("revision", range(4))
def test_prune_leaves_what_compact_joins_again(revision: int, tmp_path: Path) -> None:
    """An early pane that came late makes a new joined file, in which it alone is new and replaced."""
    results(tmp_path)
    save_own(tmp_path, [pane("c", hour, 5) for hour in (0, 1, 60)])
    compact(tmp_path)
    before = {repr(each) for each in newest(ResultsFolder(tmp_path).panes())}
    save_own(tmp_path, [pane("c", 0, revision, "early")])
    prune_before_compact_removes(tmp_path)
    assert {repr(each) for each in newest(ResultsFolder(tmp_path).panes())} == before


def test_windows_without_a_pane_on_time_are_not_moved(tmp_path: Path) -> None:
    results(tmp_path)
    early = save_of_all(tmp_path, [pane("c", 0, 0, "early"), pane("d", 0)])
    save_of_all(tmp_path, [pane(name, 60) for name in NAMES])
    compact(tmp_path)
    assert all(path.exists() for path in early.values())


def test_an_early_estimate_moves_if_its_window_has_ended_without_another(tmp_path: Path) -> None:
    results(tmp_path)
    save_of_all(tmp_path, [pane(name, 0, 0, "early") for name in NAMES])
    save_of_all(tmp_path, [pane(name, 0, flags=(Flag.FEW_REPORTS.value,)) for name in NAMES])
    save_of_all(tmp_path, [pane(name, 60) for name in NAMES])
    before = everything(tmp_path)
    compact(tmp_path)
    assert everything(tmp_path) == before
    assert days_left(tmp_path) == {"20260103"}


def test_a_damaged_file_is_not_moved_and_is_named(tmp_path: Path) -> None:
    paths = save_of_all(results(tmp_path), [pane(name, 0) for name in NAMES])
    save_of_all(tmp_path, [pane(name, 60) for name in NAMES])
    paths[COUNTS].write_bytes(paths[COUNTS].read_bytes()[:-9])
    damaged: list[ResultsError] = []
    compact(tmp_path, damaged=damaged.append)
    assert [path for path in paths.values() if path.exists()] == [paths[COUNTS]]
    assert len(damaged) == 1


# What a merge reads.


@pytest.mark.parametrize("other", range(6))
def test_a_merge_takes_the_pane_that_is_not_marked(other: int, tmp_path: Path) -> None:
    """Whatever the digests that name the files."""
    early = [pane(name, 0, 0, "early") for name in ("c", "d")]
    save_of_all(results(tmp_path), [replace(each, flags=(Flag.INCOMPLETE.value,)) for each in early])
    save_of_all(tmp_path, [*early, pane("e-2", 0, 0, "early", n=1 + other)])
    of_files = Merging("out", tmp_path, (tmp_path,))
    assert [each.flags for key in of_files.windows for each in of_files.part(0, key, None).panes] == [()] * 3
    (tmp_path / "joined").mkdir()
    panes = [*early, *(replace(each, flags=(Flag.INCOMPLETE.value,)) for each in early)]
    save_of_all(tmp_path / "joined", [*panes, pane("e-2", 0, 0, "early", n=1 + other)])
    of_one = Merging("joined", tmp_path / "joined", (tmp_path / "joined",))
    assert [each.flags for key in of_one.windows for each in of_one.part(0, key, None).panes] == [()] * 3


@pytest.mark.parametrize("kind", [COUNTS, "mle", FEW])
def test_a_merge_says_that_a_file_was_removed_meanwhile(kind: str, tmp_path: Path) -> None:
    flags = (Flag.FEW_REPORTS.value,) if kind == FEW else ()
    paths = save_of_all(results(tmp_path), [pane(name, 0, flags=flags) for name in NAMES])
    merging = Merging("out", tmp_path, (tmp_path,))
    (key, *_) = merging.windows
    assert (list(merging.headers), merging._few) != ([], {})  # the headers are in memory now
    paths[kind].unlink()
    with pytest.raises(ResultsError) as error:
        merging.part(0, key, None)
    assert str(error.value) == f"{paths[kind]}: was removed meanwhile; run the command again"
