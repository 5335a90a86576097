"""Values and suggestions in messages about mistakes."""

import pytest

from uldp.schemas.specs.mistakes import MAX_COMPARED, near, plain, quote


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
