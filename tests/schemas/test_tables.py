"""The files that a spec names: labels of its domain, and background of its tags."""

import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.build import MINIMAL
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.specfile import SpecError
from uldp.schemas.specs.values import MOST_LABEL_LINES


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "labels.csv").write_text('value\nhome\n\n"a, b"\ngym\n')
    return tmp_path


def test_labels_file_is_a_csv_of_one_column(folder: Path) -> None:
    spec = CollectionSpec.parse(MINIMAL | {"domain": {"labels_file": "labels.csv"}, "sensitive": ["a, b"]}, base=folder)
    assert spec.labels == ["home", "a, b", "gym"]
    assert spec.size == 3
    assert spec.sensitive_mask.tolist() == [False, True, False]
    assert [spec.index("home"), spec.index("gym"), spec.index(1)] == [0, 2, 1]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("value\n", "the file has 0 labels; write two or more"),
        ("value\nhome\nwork\nhome\n", "label 'home' occurs twice; labels must differ"),
        (f'value\n"{"x" * 200_000}\n', "line 2: a field has more than 131,072 characters; is a quote not closed?"),
        ("home\nwork\n", "line 1: 'home' must be the header value"),
        ("label;count\na;1\nb;2\n", "line 1: 'label;count' must be the header value"),
        ("value\na;1\nb;2\n", "every row has the character ';'; write the values alone, in one column"),
        ("value\na,1\nb,2\n", "line 2: 'a,1': the row has 2 fields; write value"),
        ('value\n"home\nwork"\ngym\n', "line 2: a field ends on line 3; close its quote"),
        ('value\nhome\n"work\ngym\n', "line 3: a quote is opened here and not closed"),
        ('value\n"home"s\nwork\n', 'line 2: text follows a closed quote; write "" for a quote inside of a field'),
    ],
    ids=lambda text: text[:20],
)
def test_labels_file_needs_two_different_labels(folder: Path, content: str, text: str) -> None:
    (folder / "labels.csv").write_text(content)
    with pytest.raises(SpecError) as caught:
        CollectionSpec.parse(MINIMAL | {"domain": {"labels_file": "labels.csv"}}, base=folder)
    assert str(caught.value) == f"spec: domain.labels_file: {folder}/labels.csv: {text}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no.csv", "/no.csv: No such file or directory; check the path"),
        (".", ": Is a directory; check the path"),
        ("no\0.csv", "/no\\x00.csv': no file can have this name; check the path"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_once(folder: Path, name: str, text: str) -> None:
    named: dict[str, dict[str, Any]] = {
        "domain.labels_file": {"domain": {"labels_file": name}},
        "tags.0.background": {"sensitive": [0], "tags": [{"name": "home", "background": name}]},
    }
    for key, keys in named.items():
        with pytest.raises(SpecError) as caught:
            CollectionSpec.parse(MINIMAL | keys, base=folder)
        assert str(caught.value).replace("'/", "/") == f"spec: {key}: {folder}{text}"


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"], ids=["line feed", "carriage return", "both"])
def test_labels_of_too_many_lines_are_refused_before_a_row_is_made(folder: Path, end: str) -> None:
    (folder / "labels.csv").write_bytes(f"value{end}{f'x{end}' * MOST_LABEL_LINES}".encode())
    tracemalloc.start()
    try:
        with pytest.raises(SpecError) as caught:
            CollectionSpec.parse(MINIMAL | {"domain": {"labels_file": "labels.csv"}}, base=folder)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert str(caught.value) == (
        f"spec: domain.labels_file: {folder}/labels.csv: the file has 1,048,577 lines, and 1,048,576 is the most;"
        " is this the right file?"
    )
    assert peak < 1 << 27  # a buffer of the most bytes, and its text; rows take 366 MB


WEIGHT = "must be a finite number of 0 or more"
LONG = f"'{'1' * 37}...{'1' * 36}"


def background_of(folder: Path, content: str, **keys: Any) -> Any:
    (folder / "home.csv").write_text(content)
    tags = [{"name": "home", "background": "home.csv"}]
    return CollectionSpec.parse(MINIMAL | {"sensitive": [0], "tags": tags} | keys, base=folder).background


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        ("value,weight\n1,1\n4,3\n", {}),
        ("1,0.25\n4,0.75\n", {}),
        ("4,2\n1,1\n4,1\n2,0\n", {}),
        ("b,1\ne,3\n", {"domain": {"labels": list("abcde")}}),
    ],
    ids=["header", "no header", "repeated", "labels"],
)
def test_background_is_the_weights_made_a_distribution(folder: Path, content: str, keys: dict[str, Any]) -> None:
    assert background_of(folder, content, **keys).tolist() == [[0, 0.25, 0, 0, 0.75]]


@pytest.mark.parametrize(
    ("content", "keys", "strength"),
    [
        ("1,30\n4,10\n", {}, 10),
        ("1,30.0\n4,10\n2,0\n", {}, 10),
        ("1,30.5\n4,10.5\n", {}, np.nan),
        ("1,30\n4,10\n", {"strength": 200}, 200),
        ("1,0.75\n4,0.25\n", {"strength": 2.5}, 2.5),
    ],
)
def test_a_background_of_counts_is_worth_a_quarter_of_them_unless_the_spec_says_more(
    folder: Path, content: str, keys: dict[str, Any], strength: float
) -> None:
    (folder / "home.csv").write_text(content)
    tags = [{"name": "home", "background": "home.csv", **keys}, {"name": "others"}]
    spec = CollectionSpec.parse(MINIMAL | {"sensitive": [0], "tags": tags}, base=folder)
    np.testing.assert_array_equal(spec.variables[""].strength, [strength, np.nan])


def test_numbers_are_labels_where_there_are_labels(folder: Path) -> None:
    domain = {"labels": ["4", "3", "2", "1", "0"]}
    assert background_of(folder, "4,1\n", domain=domain, sensitive=["4"]).tolist() == [[1, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "the weights sum to 0; give at least one value a weight above 0"),
        ("1,1e308\n2,1e308\n", "the weights sum to more than 1.8e308; divide all of them by one number"),
        ("value,weight\n\n1,-1\n", f"line 3: '1,-1': weight '-1' {WEIGHT}"),
        ("1,inf\n", f"line 1: '1,inf': weight 'inf' {WEIGHT}"),
        ("1,1\n5,1\n", "line 2: '5,1': 5 is outside of the domain 0 to 4"),
        ("1,1\nvalue,weight\n", "line 2: 'value,weight': 'value' is a label, but the domain has only a size"),
        ("1,x\n", f"line 1: '1,x': weight 'x' {WEIGHT}"),
        ("1\n", "line 1: '1': the row has 1 fields; write value,weight"),
    ],
    ids=lambda text: text[:20],
)
def test_background_that_says_nothing_is_an_error(folder: Path, content: str, text: str) -> None:
    with pytest.raises(SpecError) as caught:
        background_of(folder, content)
    assert str(caught.value) == f"spec: tags.0.background: {folder}/home.csv: {text}"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_table_in_another_encoding_says_what_to_do(folder: Path, encoding: str) -> None:
    (folder / "labels.csv").write_text("\ufeffvalue\nhome\nwork\n", encoding=encoding)
    with pytest.raises(SpecError, match=r"save it as UTF-8$"):
        CollectionSpec.parse(MINIMAL | {"domain": {"labels_file": "labels.csv"}}, base=folder)


def test_a_long_table_is_refused_before_it_is_read(folder: Path) -> None:
    with (folder / "labels.csv").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(SpecError, match="the file has more than 67,108,864 bytes"):
        CollectionSpec.parse(MINIMAL | {"domain": {"labels_file": "labels.csv"}}, base=folder)
    tags = [{"name": "home", "background": "labels.csv"}]
    with pytest.raises(SpecError, match="the file has more than 536,870,912 bytes"):
        CollectionSpec.parse(MINIMAL | {"sensitive": [0], "tags": tags}, base=folder)


def keys_that_name(name: str) -> dict[str, dict[str, Any]]:
    """The keys of specs that name a file, by the key that names it."""
    return {
        "domain.labels_file": {"domain": {"labels_file": name}},
        "tags.0.background": {"sensitive": [0], "tags": [{"name": "home", "background": name}]},
        "tags.0.zones": {"sensitive": [0], "tags": [{"name": "home", "zones": name}]},
        "candidates_file": {
            "domain": {"strings": {"longest": 9}},
            "mechanism": {"name": "bloom", "epsilon": 2.0},
            "candidates_file": name,
        },
    }


@pytest.mark.parametrize("key", keys_that_name(""))
@pytest.mark.parametrize("kind", ["absolute", "above", "link", "folder of a link", "pipe", "device", "folder"])
def test_a_spec_opens_regular_files_of_its_own_folder_alone(tmp_path: Path, key: str, kind: str) -> None:
    own = tmp_path / "own"
    own.mkdir()
    secret = tmp_path / "secret.csv"
    secret.write_text("value\na\nb\n")
    name = {"absolute": str(secret), "above": "../secret.csv", "folder of a link": "up/secret.csv"}.get(kind, "it")
    match kind:
        case "link":
            (own / "it").symlink_to(secret)
        case "folder of a link":
            (own / "up").symlink_to(tmp_path)
        case "pipe":
            os.mkfifo(own / "it")
        case "device":
            (own / "it").symlink_to("/dev/zero")
        case "folder":
            (own / "it").mkdir()
    with pytest.raises(SpecError) as caught:
        CollectionSpec.parse(MINIMAL | keys_that_name(name)[key], base=own)
    text = {"pipe": "is no regular file; copy what it holds", "folder": "Is a directory"}.get(kind, "is not below")
    assert str(caught.value).startswith(f"spec: {key}: {own / name}: ")
    assert text in str(caught.value)


def test_a_user_may_allow_another_folder(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "labels.csv").write_text("value\na\nb\n")
    keys = MINIMAL | {"domain": {"labels_file": "../labels.csv"}}
    assert CollectionSpec.parse(keys, base=tmp_path / "own", below=tmp_path).labels == ["a", "b"]


def test_a_link_may_lead_to_a_file_of_the_folder(folder: Path) -> None:
    (folder / "link.csv").symlink_to("labels.csv")
    keys = MINIMAL | {"domain": {"labels_file": "link.csv"}}
    assert CollectionSpec.parse(keys, base=folder).labels == ["home", "a, b", "gym"]
