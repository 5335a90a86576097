"""Files of panes of several collections: every reader finds what it finds in a file for each pane."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build import HOUR, START
from tests.pipelines.results.files_of_all import NAMES, everything, pane, results, save_of_all, save_own
from uldp.pipelines.live.headers import Headers
from uldp.pipelines.live.watch import Watch
from uldp.pipelines.merge.folders import Merging
from uldp.pipelines.merge.ids import Ids
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.kept import Kept
from uldp.pipelines.results.selection import ALL, Selection
from uldp.schemas.codec import blocks as blocks_module
from uldp.schemas.codec.inflate import inflate
from uldp.schemas.flags import Flag
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.folders import COUNTS, FEW

pytestmark = pytest.mark.usefixtures("small_blocks")

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
    assert sorted(map(repr, published)) == sorted(map(repr, current.estimates))
    return [
        list(map(repr, current.estimates)),
        list(map(repr, current.unpublished)),
        list(map(repr, current.held)),
        [repr(current.statistic_of(each)) for each in current.estimates],
        [repr(each) for key in sorted(kept.versions) for each in kept.statistics(key)],
        sorted(map(repr, kept.left_out.items())),
    ]


@settings(max_examples=40, deadline=None)
@given(PANES, SELECTIONS)
def test_readers_find_the_same(
    tmp_path_factory: pytest.TempPathFactory, fired: list[tuple[str, int, int, bool, int]], selection: Selection
) -> None:
    one, other = both(tmp_path_factory.mktemp("out"), fired)
    assert found(other, selection) == found(one, selection)
    assert found(other, ALL) == found(one, ALL)
    assert everything(other) == everything(one)
    headers = [Headers(out, Watch(out)) for out in (one, other)]
    assert headers[0].newest() == headers[1].newest()
    assert headers[0].fired().written.keys() == headers[1].fired().written.keys()
    parts = []
    for out in (one, other):
        merging = Merging(str(out), out, (out,))
        parts.append([repr(merging.part(0, key, Ids())) for key in sorted(merging.windows)])
    assert parts[0] == parts[1]


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


# What a merge reads.


@pytest.mark.parametrize("kind", [COUNTS, "mle", FEW])
def test_a_merge_says_that_a_file_was_removed_meanwhile(kind: str, tmp_path: Path) -> None:
    flags = (Flag.FEW_REPORTS.value,) if kind == FEW else ()
    paths = save_of_all(results(tmp_path), [pane(name, 0, flags=flags) for name in NAMES])
    merging = Merging("out", tmp_path, (tmp_path,))
    (key, *_) = merging.windows
    assert (list(merging.headers), merging._few) != ([], {})  # the headers are in memory now
    paths[kind].unlink()
    with pytest.raises(ResultsError) as error:
        merging.part(0, key, Ids())
    assert str(error.value) == f"{paths[kind]}: uldp prune removed it meanwhile; run the command again"
