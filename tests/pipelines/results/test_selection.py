"""What a reader of results chooses, by the names of folders."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uldp.pipelines.results.selection import ALL, Selection, SelectionError, require, window_of
from uldp.schemas.records import Accounting, Pane, PaneKind, SupportCounts
from uldp.transforms.io.results import window_folder

HOUR = 3_600_000
#: One hour of ``old``, three of ``new`` in two versions that overlap.
WINDOWS = [("old", 1, 0, HOUR), ("new", 1, 0, HOUR), ("new", 1, HOUR, 2 * HOUR), ("new", 2, HOUR, 2 * HOUR)]
WINDOWS += [("new", 2, 2 * HOUR, 3 * HOUR)]


@given(
    st.from_regex(r"[a-z0-9-]{1,64}", fullmatch=True),
    st.integers(1, 2**31 - 1),
    st.integers(0, 253_370_764_800_000 - 1),
    st.integers(1, 10**9),
)
def test_the_folder_of_a_window_says_which_it_is(collection: str, version: int, start: int, length: int) -> None:
    pane, accounting = Pane(PaneKind.EARLY, 0), Accounting()
    counts = SupportCounts(collection, version, start, start + length, pane, np.zeros(2, np.int64), accounting)
    assert window_of(window_folder(counts)) == counts.key


@pytest.mark.parametrize(
    "name",
    [
        "w",
        "c-v1/w",
        "c-v1/20261301T000000Z--20260101T010000Z",
        "C-v1/20260101T000000Z--20260101T010000Z",
        "c/20260101T000000Z--20260101T010000Z",
    ],
)
def test_another_folder_says_nothing_and_is_looked_into(name: str) -> None:
    assert window_of(name) is None
    assert Selection(collection="other", last=1).folders([name]) == [name]


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        (ALL, [0, 1, 2, 3, 4]),
        (Selection(collection="old"), [0]),
        (Selection(collection="nobody"), []),
        (Selection(since=HOUR - 1), [0, 1, 2, 3, 4]),
        (Selection(since=HOUR), [2, 3, 4]),
        (Selection(last=1), [0, 4]),
        (Selection(last=2), [0, 2, 3, 4]),
        (Selection(last=9), [0, 1, 2, 3, 4]),
        (Selection(collection="new", since=HOUR, last=1), [4]),
        (Selection(estimator="mle"), [0, 1, 2, 3, 4]),
    ],
)
def test_windows(selection: Selection, chosen: list[int]) -> None:
    assert selection.windows(WINDOWS) == {WINDOWS[index] for index in chosen}


def test_names_must_be_there() -> None:
    require("collection", None, {"survey"})
    require("collection", "survey", {"survey"})
    with pytest.raises(
        SelectionError, match=r"^no collection 'survy' is there; did you mean 'survey'[?] choose one of: s"
    ):
        require("collection", "survy", {"survey", "s"})
    with pytest.raises(SelectionError, match=r"^no estimator 'x' is there; choose one of: em, mle$"):
        require("estimator", "x", {"mle", "em"})
