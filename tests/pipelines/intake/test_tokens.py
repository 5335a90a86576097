"""Who may post."""

from pathlib import Path

import pytest

from uldp.pipelines.intake.tokens import Tokens
from uldp.schemas.errors import RequestError

TOKEN, OTHER = "0123456789abcdef", "fedcba9876543210"


@pytest.mark.parametrize(
    ("header", "sender"),
    [
        (f"Bearer {TOKEN}", "phone"),
        (f"bearer  {TOKEN} ", "phone"),
        (f"Bearer {OTHER}", "watch"),
        (f"Bearer {TOKEN}0", None),
        (f"Basic {TOKEN}", None),
        (TOKEN, None),
        ("", None),
        ("Bearer \udcff", None),
    ],
)
def test_a_token_names_its_sender(header: str, sender: str | None, tmp_path: Path) -> None:
    (tmp_path / "tokens.csv").write_text(f"token,sender\n{TOKEN},phone\n{OTHER},watch\n")
    assert Tokens.read(tmp_path / "tokens.csv").sender(header) == sender


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("token,sender\n", "the file has no tokens"),
        (f"{TOKEN},phone\n", "not a table of token,sender"),
        (f"token,sender\n{TOKEN},phone\n{TOKEN},watch\n", "line 3: the token occurs twice"),
        (f"token,sender\n{TOKEN}\n", "line 2: the row has 1 fields"),
        (f"token,sender\n{TOKEN[:15]},phone\n", "16 printable ASCII characters"),
        (f"token,sender\n{TOKEN}é,phone\n", "16 printable ASCII characters"),
        (f"token,sender\n{TOKEN},\n", "a token has no sender"),
    ],
)
def test_a_wrong_table_is_refused_in_one_line_without_a_token(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text(text)
    with pytest.raises(RequestError) as refused:
        Tokens.read(path)
    assert why in str(refused.value)
    assert str(refused.value).startswith(f"{path}: ")
    assert TOKEN[:15] not in str(refused.value)
    assert "\n" not in str(refused.value)
