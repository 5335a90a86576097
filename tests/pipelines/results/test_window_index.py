"""Files of many panes have an index of their windows: readers pass by the rest, and take no false index at its word."""

import io
import json
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR, START
from tests.pipelines.results.samples import folder_of
from uldp.pipelines.results.compact import compact
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.pipelines.results.selection import ALL, Selection
from uldp.schemas.codec import blocks as blocks_module
from uldp.schemas.codec.blocks import Container, ContainerError
from uldp.schemas.codec.columnar import write_varint
from uldp.schemas.codec.inflate import inflate
from uldp.schemas.statistic import Statistic
from uldp.transforms.io import durable_files, window_index
from uldp.transforms.io.durable_files import encode_record, write_file
from uldp.transforms.io.results import shared_file, shared_folder, statistic_file, stored_file
from uldp.transforms.io.window_index import BlockWindows, Place, first_of_last, index_of, indexed, place_of

HOURS = 30


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two panes of counts fill a block."""
    monkeypatch.setattr(durable_files, "BLOCK_SIZE", 100)


def pane(hour: int, n: int = 3, *, collection: str = "c", revision: int = 0) -> Statistic:
    return build.pane([n, 0], start=START + hour * HOUR, revision=revision, key=(collection, 1))


def records(panes: Sequence[Statistic]) -> list[tuple[Place, bytes]]:
    return [(place_of(each), encode_record("statistic", each.to_avro())) for each in panes]


def share(out: Path, *panes: Statistic) -> Path:
    name, content = shared_file(shared_folder("counts", panes[0]), records(panes), "statistic")
    write_file(str(out / name), content)
    return out / name


def blocks_in(path: Path) -> tuple[BlockWindows, ...]:
    with path.open("rb") as file:
        return held(Container.open(file))


def held(container: Container) -> tuple[BlockWindows, ...]:
    return tuple(run.held for (run,) in index_of(container) or ())


def found(out: Path, selection: Selection = ALL, damaged: list[ResultsError] | None = None) -> list[tuple[int, int]]:
    """The hours and n of the newest panes."""
    (out / "specs" / "c-v1").mkdir(parents=True, exist_ok=True)
    folder = folder_of(out) if damaged is None else folder_of(out, damaged.append)
    current = folder.current(selection)
    windows = {each.key: each for each in newest(current.statistics.values())}
    chosen = selection.windows(windows)
    return sorted(((each.window_start - START) // HOUR, each.n) for key, each in windows.items() if key in chosen)


# The file.


def test_a_file_is_the_same_whatever_the_order_of_its_panes() -> None:
    panes = records([pane(hour, n) for hour in range(10) for n in (3, 5)])
    shuffled = random.Random(1).sample(panes, len(panes))
    assert indexed("statistic", shuffled) == indexed("statistic", panes)


def test_blocks_hold_windows_in_order(tmp_path: Path) -> None:
    path = share(tmp_path, *[pane(hour) for hour in reversed(range(HOURS))])
    blocks = blocks_in(path)
    assert len(blocks) > 5
    assert sum(block.windows for block in blocks) == sum(block.panes for block in blocks) == HOURS
    assert (blocks[0].first, blocks[-1].last) == (place_of(pane(0)), place_of(pane(HOURS - 1)))
    assert all(before.last < after.first for before, after in pairwise(blocks))


@given(st.lists(st.integers(0, 8), min_size=1, max_size=40), st.integers(1, 12))
def test_the_first_of_the_last_windows_has_no_more_before_it_than_it_must(hours: list[int], number: int) -> None:
    """Windows from it on are ``number`` or more; and without the block that it begins, they are fewer."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(durable_files, "BLOCK_SIZE", 100)
        _, content = indexed("statistic", records([pane(hour) for hour in hours]))
    blocks = held(Container.open(io.BytesIO(content)))
    first = first_of_last(blocks, number)
    windows = {place_of(pane(hour)) for hour in hours}
    if first is None:
        assert len(windows) < number
        return
    begun = [block for block in blocks if block.first == first][-1]
    assert len([place for place in windows if place >= first]) >= number
    assert len([place for place in windows if place > begun.last]) < number


# Its readers.


@pytest.mark.parametrize("last", [1, 2, 7, HOURS, HOURS + 1])
def test_the_last_windows_are_read_and_no_other_block(
    last: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    share(tmp_path, *[pane(hour) for hour in range(HOURS)])
    inflated: list[int] = []

    def counted(codec: str, block: bytes, bound: int) -> bytes:
        inflated.append(len(block))
        return inflate(codec, block, bound)

    monkeypatch.setattr(blocks_module, "inflate", counted)
    assert found(tmp_path, Selection(last=last)) == [(hour, 3) for hour in range(HOURS)][-last:]
    assert len(inflated) == -(-min(last, HOURS) // 2)


@pytest.mark.parametrize("since", [-5, 0, 11, HOURS - 1, HOURS])
def test_windows_since_a_time_are_read(since: int, tmp_path: Path) -> None:
    share(tmp_path, *[pane(hour) for hour in range(HOURS)])
    chosen = Selection(since=START + since * HOUR)
    assert found(tmp_path, chosen) == [(hour, 3) for hour in range(max(since, 0), HOURS)]
    assert found(tmp_path, Selection(since=START + since * HOUR, last=2)) == found(tmp_path, chosen)[-2:]
    before = Selection(until=START + since * HOUR)
    assert found(tmp_path, before) == [(hour, 3) for hour in range(min(max(since, 0), HOURS))]
    assert found(tmp_path, Selection(until=START + since * HOUR, last=2)) == found(tmp_path, before)[-2:]


@given(
    st.lists(
        st.tuples(st.sampled_from(["one", "two", "own"]), st.integers(0, 12), st.integers(1, 3)),
        min_size=1,
        max_size=40,
    ),
    st.integers(1, 6),
    st.none() | st.integers(0, 12),
)
def test_the_last_of_windows_in_several_files_are_those_of_all(
    tmp_path_factory: pytest.TempPathFactory,
    places: list[tuple[str, int, int]],
    last: int,
    since: int | None,
) -> None:
    out = tmp_path_factory.mktemp("out")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(durable_files, "BLOCK_SIZE", 100)
        for where in {where for where, *_ in places}:
            panes = [pane(hour, n, revision=n) for of, hour, n in dict.fromkeys(places) if of == where]
            if where != "own":
                share(out, *panes)
            for each in panes if where == "own" else ():
                name, content = statistic_file(each)
                write_file(str(out / name), content)
    largest = {
        hour: max(n for _, of, n in places if of == hour) for _, hour, _ in places if since is None or hour >= since
    }
    expected = sorted(largest.items())[-last:]
    assert found(out, Selection(last=last, since=None if since is None else START + since * HOUR)) == expected


def test_files_of_another_collection_are_not_opened(tmp_path: Path) -> None:
    share(tmp_path, pane(0))
    share(tmp_path, pane(0, collection="d")).write_bytes(b"opened")
    assert found(tmp_path, Selection(collection="c")) == [(0, 3)]


def test_panes_of_another_collection_than_their_folder_are_damage(tmp_path: Path) -> None:
    name, content = shared_file(shared_folder("counts", pane(0)), records([pane(1, collection="d")]), "statistic")
    write_file(str(tmp_path / name), content)
    with pytest.raises(ResultsError, match=r"damaged"):
        ResultsFolder(tmp_path).panes()


def test_a_file_without_an_index_is_read_whole(tmp_path: Path) -> None:
    encoded = [record for _, record in records([pane(hour) for hour in range(HOURS)])]
    name, content = stored_file(shared_folder("counts", pane(0)), encoded, "statistic")
    write_file(str(tmp_path / name), content)
    assert blocks_in(tmp_path / name) == ()
    assert found(tmp_path, Selection(last=2)) == [(HOURS - 2, 3), (HOURS - 1, 3)]


def test_a_joined_file_has_an_index(tmp_path: Path) -> None:
    (tmp_path / "specs" / "c-v1").mkdir(parents=True)
    (tmp_path / "specs" / "c-v1" / "spec.yaml").touch()
    for hour in range(3 * 24):
        name, content = statistic_file(pane(hour))
        write_file(str(tmp_path / name), content)
    compact(tmp_path)
    joined = sorted(tmp_path.glob("counts/c-v1/shared/*.avro"))
    assert joined
    assert sum(block.windows for path in joined for block in blocks_in(path)) == 3 * 24 - len(
        [*tmp_path.glob("counts/c-v1/2*/*.avro")]
    )


# Damage, and lies.


def forge(path: Path, change: Callable[[list[list[Any]]], object], *, signed: bool) -> None:
    """Change the index of a file; by somebody who knows how to sign it, or not."""
    content = path.read_bytes()
    with path.open("rb") as file:
        container = Container.open(file)
    stored = container.metadata["uldp.windows"]
    rows = json.loads(stored[16:])
    change(rows)
    text = json.dumps(rows, separators=(",", ":"))
    digest = window_index._signed(text, container.sync_marker) if signed else stored[:16].decode()
    forged = content.replace(_metadata(stored), _metadata(f"{digest}{text}".encode()))
    assert forged != content
    path.write_bytes(forged)


def _metadata(value: bytes) -> bytes:
    return b"uldp.windows" + write_varint(len(value)) + value


def _earlier(rows: list[list[Any]]) -> None:
    """Hide the last block from a reader of the last windows."""
    rows[-1][2:] = [rows[0][2] - 10, rows[0][3] - 10, rows[0][2] - 5, rows[0][3] - 5]
    rows.insert(0, rows.pop())


LIES: dict[str, Callable[[list[list[Any]]], object]] = {
    "a block too few": lambda rows: rows.pop(),
    "a block too many": lambda rows: rows.append([1, 1, *rows[-1][4:], *rows[-1][4:]]),
    "nothing": list.clear,
    "another number of panes": lambda rows: rows[0].__setitem__(0, rows[0][0] + 1),
    "later windows": lambda rows: rows[-1].__setitem__(slice(2, 6), [number + 9 * HOUR for number in rows[-1][2:]]),
    "the blocks in another order": _earlier,
    "a text": lambda rows: rows[0].__setitem__(0, "1"),
    "a short row": lambda rows: rows[0].pop(),
    "no windows": lambda rows: rows[0].__setitem__(1, 0),
    "true": lambda rows: rows[0].__setitem__(1, True),
}


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("lie", LIES)
def test_a_false_index_is_damage_and_no_pane_is_lost_or_invented(lie: str, signed: bool, tmp_path: Path) -> None:
    path = share(tmp_path, *[pane(hour) for hour in range(HOURS)])
    name, content = statistic_file(pane(HOURS))
    write_file(str(tmp_path / name), content)
    forge(path, LIES[lie], signed=signed)
    for selection in (ALL, Selection(last=HOURS), Selection(since=START)):
        damaged: list[ResultsError] = []
        assert found(tmp_path, selection, damaged) == [(HOURS, 3)]
        (error,) = damaged
        assert str(error).startswith(f"{path}: damaged, or not an Avro file of schema statistic (")


def test_the_index_of_another_file_is_damage(tmp_path: Path) -> None:
    one, other = (share(tmp_path / name, *[pane(hour, n) for hour in range(HOURS)]) for name, n in (("a", 3), ("b", 4)))
    stored = []
    for path in (one, other):
        with path.open("rb") as file:
            stored.append(Container.open(file).metadata["uldp.windows"])
    mine, others = map(_metadata, stored)
    one.write_bytes(one.read_bytes().replace(mine, others))
    with pytest.raises(ResultsError, match="its index of windows is damaged"):
        ResultsFolder(tmp_path / "a").panes()


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_a_file_that_lacks_its_last_blocks_is_damage(blocks: int, tmp_path: Path) -> None:
    path = share(tmp_path, *[pane(hour) for hour in range(HOURS)])
    with path.open("rb") as file:
        container = Container.open(file)
        content = path.read_bytes()
        ends = [at for at in range(len(content)) if content.startswith(container.sync_marker, at)]
    path.write_bytes(content[: ends[-1 - blocks] + 16])
    with pytest.raises(ResultsError, match="it ends before the last block of its index"):
        ResultsFolder(tmp_path).panes()


@pytest.mark.parametrize("byte", range(0, 40, 3))
def test_a_changed_bit_of_an_index_is_damage(byte: int, tmp_path: Path) -> None:
    path = share(tmp_path, *[pane(hour) for hour in range(HOURS)])
    content = bytearray(path.read_bytes())
    content[content.index(b"uldp.windows") + len(b"uldp.windows") + 2 + byte] ^= 1 << byte % 8
    path.write_bytes(content)
    with pytest.raises(ResultsError, match="its index of windows is damaged"):
        ResultsFolder(tmp_path).panes()


def test_deep_text_in_an_index_is_damage() -> None:
    marker = bytes(16)
    text = "[" * 100_000
    metadata = {"uldp.windows": f"{window_index._signed(text, marker)}{text}".encode()}
    container = Container("statistic", {}, None, 1, "null", metadata, marker, io.BytesIO())
    with pytest.raises(ContainerError, match="its index of windows is damaged"):
        index_of(container)
