"""Files of the truth, right and wrong ones."""

import math
from bisect import bisect_right
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from uldp.mechanisms.protocol.encoding import Held
from uldp.pipelines.simulation.truth import USERS, Truth
from uldp.schemas.arrays import Floats
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import CollectionSpec


def make_spec(**changes: object) -> CollectionSpec:
    base = {
        "collection": "small",
        "domain": {"size": 4},
        "sensitive": [1],
        "tags": [{"name": "home"}, {"name": "work"}],
    }
    return build.spec(**base | changes)


def of_sets(of: dict[str, object], name: str = "set-ss", **keys: object) -> CollectionSpec:
    """A collection of sets of at most two."""
    return build.spec(domain={"set": {"of": of, "at_most": 2}}, mechanism={"name": name, "epsilon": 1.0}, **keys)


def load(folder: Path, text: str, spec: CollectionSpec | None = None) -> Truth:
    path = folder / "truth.csv"
    path.write_text(text, encoding="utf-8")
    return Truth.load(path, spec or make_spec())


def test_p_is_over_values_and_r_over_values_and_bots(tmp_path: Path) -> None:
    # Value 1 is sensitive for all, and some hide it all the same: f_pre knows only the user's own tags.
    truth = load(tmp_path, "value,tag,weight\n0,,3\n0,home,1\n1,work,2\n3,,2\n3,work,0\n0,,2\n")
    np.testing.assert_allclose(truth.distribution(), [0.6, 0.2, 0, 0.2])
    np.testing.assert_allclose(truth.intermediate(), [0.5, 0, 0, 0.2, 0.1, 0.2])


def test_values_are_labels_where_the_domain_has_labels(tmp_path: Path) -> None:
    spec = make_spec(domain={"labels": ["1", "two", "0"]}, sensitive=["two"])
    truth = load(tmp_path, 'value,tag,weight\n"two",,1\n0,,2\n1,home,1\n', spec)
    np.testing.assert_allclose(truth.distribution(), [0.25, 0.25, 0.5])


def test_items_with_shares_are_held_independently(tmp_path: Path) -> None:
    truth = load(tmp_path, "item,share\na,.6\nc,.5\nd,0.001\n", of_sets({"labels": ["a", "b", "c", "d"]}))
    assert truth.distribution() == pytest.approx([0.6, 0, 0.5, 0.001], abs=1 / (2 * USERS))
    (held,) = truth.columns
    both = ((held.values == 0).any(axis=1) & (held.values == 2).any(axis=1)) @ truth.probabilities
    assert both == pytest.approx(0.3, abs=5 * math.sqrt(0.3 * 0.7 / USERS))


def test_sets_of_strings_have_shares_of_candidates(tmp_path: Path) -> None:
    spec = of_sets({"strings": {"longest": 9}}, "set-olh", candidates=["maps", "news", "no"])
    truth = load(tmp_path, "items,weight\nmaps;news;cats,2\n,1\nnews,1\n", spec)
    np.testing.assert_allclose(truth.distribution(), [0.5, 0.75, 0])
    alone = load(tmp_path, "item,share\nmaps,.3\ncats,.5\n", spec)
    assert alone.distribution() == pytest.approx([0.3, 0, 0], abs=1 / (2 * USERS))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("maps;;news", "'maps;;news' has an empty string; remove it"),
        ("maps;maps", "'maps;maps' has a string twice; remove one"),
        ("maps;longer than 9", "the string has 13 bytes of UTF-8, and the longest has 9"),
    ],
)
def test_a_row_that_is_no_set_of_strings_is_named(row: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"line 2: .*{message}"):
        load(tmp_path, f"items,weight\n{row},1\n", of_sets({"strings": {"longest": 9}}, "set-olh"))


def test_keys_with_shares_have_their_number(tmp_path: Path) -> None:
    pairs = {"of": {"labels": ["a", "b"]}, "at_most": 2, "low": 0, "high": 9}
    spec = build.spec(domain={"pairs": pairs}, mechanism={"name": "set-ss", "epsilon": 1.0})
    truth = load(tmp_path, "key,value,share\nb,7,.25\n", spec)
    assert truth.distribution() == pytest.approx([0, 0.25])
    (held,) = truth.columns
    assert {tuple(pair) for row in held.values for pair in row} == {(-1.0, 0.0), (1.0, 7.0)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item,share\na;b,.5\n", "line 2: 'a;b,.5': write one item in a row"),
        ("item,share\na,1.5\n", "line 2: 'a,1.5': share '1.5' must be a number from 0 to 1"),
        ("item,share\na,.5\na,.5\n", "line 3: 'a,.5': the item is there twice; remove one row"),
        ("item,weight\na,.5\n", "line 1: 'item,weight' must be the header items,weight or item,share"),
    ],
)
def test_a_wrong_file_of_shares_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        load(tmp_path, text, of_sets({"labels": ["a", "b"]}))


def test_a_byte_order_mark_and_empty_lines_are_no_trouble(tmp_path: Path) -> None:
    truth = load(tmp_path, "\ufeffvalue,tag,weight\n\n2,,1\n\n")
    np.testing.assert_array_equal(truth.distribution(), [0, 0, 1, 0])


class Draws:
    """A generator whose draws are known."""

    def __init__(self, draws: list[float]) -> None:
        self.draws = np.array(draws)

    def random(self, n: int) -> Floats:
        assert n == len(self.draws)
        return self.draws


weights = st.lists(st.sampled_from([0.0, 1e-12, 1e-5, 0.3, 1.0, 1000.0]), min_size=1, max_size=30).filter(any)


@given(weights, st.lists(st.floats(0, 1, exclude_max=True), max_size=20))
def test_a_draw_picks_the_cell_whose_share_holds_it(weights: list[float], draws: list[float]) -> None:
    m = len(weights)
    probabilities = np.array(weights) / sum(weights)
    ends = np.cumsum(probabilities)
    ends = (ends / ends[-1]).tolist()
    # Around each end, too, and around the parts into which a table may divide [0, 1).
    draws += [u for end in ends for u in (math.nextafter(end, 0), end, math.nextafter(end, 1))]
    draws += [u for part in (1 / 1024, 5 / 8192, 3 / 16384) for u in (math.nextafter(part, 0), part)]
    draws = [u for u in draws if 0 <= u < 1]
    truth = Truth({}, (Held(np.arange(m), np.full(m, -1)),), probabilities)
    ((values, tags),) = truth.sample(len(draws), cast(np.random.Generator, Draws(draws)))
    assert values.tolist() == [bisect_right(ends, u) for u in draws]
    assert (tags == -1).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: '' must be the header value,tag,weight"),
        ("value,tag,weight\n", "the weights sum to 0; give at least one row a weight above 0"),
        ("value,tag,weight\n0,,1e308\n1,,1e308\n", r"sum to more than 1\.8e308; divide all of them by one number$"),
        ("value,tag,weight\n0,,1\n4,,1\n", "line 3: '4,,1': 4 is outside of the domain 0 to 3"),
        ("value,tag,weight\n-1,,1\n", "line 2: '-1,,1': '-1' is a label, but the domain has only a size"),
        ("value,tag,weight\n1.5,,1\n", "line 2: '1.5,,1'.*; write a value of the domain of small version 1"),
        ("value,tag,weight\n0,gym,1\n", r"line 2: '0,gym,1': tag 'gym' is not in the spec \(home, work\); correct it"),
        (
            "value,tag,weight\n0,hoem,1\n",
            r"tag 'hoem' is not in the spec \(did you mean 'home'\?\); correct it or leave",
        ),
        ("value,tag,weight\n0,\x1b[2J,1\n", r"line 2: '0,\\x1b\[2J,1': tag '\\x1b\[2J' is not in the spec \(home"),
        (
            f"value,tag,weight\n{'1' * 5000},,1\n",
            r"line 2: '1{37}\.\.\.1{35},,1': '1+\.\.\.1+' is a label, but the domain",
        ),
        (f"value,tag,weight\n0,,{'9' * 5000}\n", r"line 2: .*: weight '9{37}\.\.\.9{38}' must be a finite number"),
        ("value,tag,weight\n0,,x\n", "line 2: '0,,x': weight 'x' must be a finite number of 0 or more"),
        ("value,tag,weight\n0,,nan\n", "weight 'nan' must be a finite"),
        ("value,tag,weight\n0,1\n", "line 2: '0,1': the row has 2 fields; write value,tag,weight"),
    ],
)
def test_errors_name_file_line_value_and_remedy(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=message) as error:
        load(tmp_path, text)
    assert str(error.value).startswith(f"{tmp_path / 'truth.csv'}: ")


def test_a_tag_where_the_spec_has_none(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"tag 'home' is not in the spec \(it has none\)"):
        load(tmp_path, "value,tag,weight\n0,home,1\n", make_spec(tags=[]))
