"""Files that hold a spec, files that hold none, and what is quoted and suggested of a mistake."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mistakes import MAX_COMPARED, near, plain, quote
from uldp.schemas.specs.specfile import SpecError

NOT_HERE = "is not allowed here; write the value in quotes, or check the indentation and the line before"
OPEN = "here and not closed"
NO_NUMBER = "is not a valid number or date; write it in quotes if it is text"
NO_MERGE = "a spec takes no keys from elsewhere by <<; write the keys out, or text as '<<'"
NO_TAG = "no value can begin with an exclamation mark; write it in quotes"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a spec must be a mapping with the key collection (got nothing); is this a spec?"),
        ("a: 1\nb: 2\na: 3\n", "line 3: key 'a' occurs twice; remove one"),
        ("b: 1\na: [1\nc: 2\n", f"line 2: not YAML: a bracket is opened {OPEN}, or a comma is missing in it"),
        ("b: 1\na: 'x\n\n", f"line 2: not YAML: a quote is opened {OPEN}"),
        ("b: 1\na: *b\n", "line 2: not YAML: no value can begin with an asterisk; write it in quotes"),
        ("b:\n\t- a\n", "line 2: not YAML: the line is indented with a tab; use spaces"),
        ("b: 1\na\nc: 1\n", "line 2: not YAML: the key has no colon after it"),
        ("b: 1\n c: 2\n", f"line 2: not YAML: a colon {NOT_HERE}"),
        ("- a\nb: 1\n", "line 2: not YAML: the indentation of the line does not match the lines around it; correct it"),
        ("b: 1\n? [a]\n: 1\n", "line 2: a key must be a word, not a list or a mapping"),
        ("b: &a [*a]\n", "line 1: a value contains itself; write it out"),
        ("b: 1\nversion: 2026-02-30\n", f"line 2: '2026-02-30' {NO_NUMBER}"),
        ("b: !!python/name:os.system\n", f"line 1: {NO_TAG}"),
        ("b: &b {a: 1}\nc: {<<: *b}\n", f"line 2: {NO_MERGE}"),
        ("b: [=, c]\n", "line 1: YAML gives = a meaning of its own; write it in quotes, as '='"),
        ("b: 1\nc: \x1b[2J\n", "line 2: YAML does not allow the character '\\x1b'; remove it"),
        ("[" * 5000, "brackets or lists are nested too deeply; is this a spec?"),
    ],
    ids=lambda value: value[:20],
)
def test_a_file_that_is_no_spec_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        CollectionSpec.load(path)
    assert str(caught.value) == f"{path}: {message}"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=rf"^{re.escape(str(tmp_path))}/no\.yaml: No such file or directory; check"):
        CollectionSpec.load(tmp_path / "no.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"collection: caf\xe9\n")
    with pytest.raises(SpecError, match=rf"^{re.escape(str(tmp_path))}/latin\.yaml: the file is not UTF-8 text;"):
        CollectionSpec.load(tmp_path / "latin.yaml")
    with pytest.raises(SpecError, match=rf"^{re.escape(str(tmp_path))}: Is a directory; check the path$"):
        CollectionSpec.load(tmp_path)
    with pytest.raises(
        SpecError, match=r"^/dev/zero: the file has more than 16,777,216 bytes; is this the right file\?$"
    ):
        CollectionSpec.load("/dev/zero")


@given(st.text(st.sampled_from("ab:[]{}-&*!?<>|,\"'# \n01."), max_size=30))
def test_any_text_is_a_spec_or_a_spec_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text)
    with pytest.raises(SpecError):  # no text this short is a spec
        CollectionSpec.load(path)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "nothing"),
        (True, "true"),
        ("\x1b[2J\u202e\n", r"'\x1b[2J\u202e\n'"),
        ("x" * 100, f"'{'x' * 37}...{'x' * 38}'"),
        ([1, [2, [3, [4]]]], "[1, [2, [...]]]"),
        pytest.param(-(16**5000), "a number of thousands of digits", id="a number without a name"),
        ([1, 16**5000], "[1, a number of thousands of digits]"),
    ],
)
def test_what_is_quoted_is_one_short_line_that_a_terminal_shows(value: object, text: str) -> None:
    assert quote(value) == text


def test_no_path_that_leads_anywhere_is_cut() -> None:
    assert plain("x" * 4096) == "x" * 4096
    assert len(plain("x" * 4097)) == 80


def test_nothing_is_suggested_among_more_words_than_are_compared() -> None:
    words = [f"label {number}" for number in range(MAX_COMPARED)]
    assert near("labell 17", words) == "did you mean 'label 17'?"
    assert near("labell 17", [*words, "one more"]) == ""
