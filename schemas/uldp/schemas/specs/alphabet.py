"""The pieces by which strings are spelled: the characters of an alphabet, and longer pieces of a public vocabulary."""

import re
import unicodedata
from collections.abc import Sequence

from uldp.schemas.specs.mistakes import ascii_quote, plain, prefixed, repeated
from uldp.schemas.specs.specfile import SpecFolder, read_text

#: An alphabet has at most so many characters, and a vocabulary so many pieces, because each is scored many times.
MOST_PIECES = 1 << 14
#: A piece has at most so many bytes, because a device looks for pieces of each length at each character of its string.
LONGEST_PIECE = 32
#: The largest size of a file of pieces.
MOST_VOCABULARY_BYTES = 1 << 20
#: The text of an alphabet has at most so many characters.
_LONGEST_TEXT = 4096

_RANGE = re.compile(r"(.)-(.)|(.)", re.DOTALL)


def characters(alphabet: str) -> str:
    r"""Return the characters of an alphabet in order, written as in ``a-z0-9-_.``: each alone, or first-last.

    ValueError if it is empty or too large, a range runs backwards, a character occurs twice, or nobody sees it.

    >>> characters("0-9-_.ac-e")
    '-.0123456789_acde'
    """
    if len(alphabet) > _LONGEST_TEXT:
        raise ValueError(f"the text has more than {_LONGEST_TEXT:,} characters; write ranges, such as a-z")
    found: list[str] = []
    for first, last, alone in _RANGE.findall(alphabet):
        if alone:
            found.append(alone)
            continue
        if not first < last:
            raise ValueError(f"the range {ascii_quote(f'{first}-{last}')} runs backwards; write a - alone at the end")
        if ord(last) - ord(first) >= MOST_PIECES:
            raise ValueError(f"the range {ascii_quote(f'{first}-{last}')} has more than {MOST_PIECES:,} characters")
        found += map(chr, range(ord(first), ord(last) + 1))
        if len(found) > MOST_PIECES:
            raise ValueError(f"more than {MOST_PIECES:,} characters; write fewer")
    if not found:
        raise ValueError("no characters; write some, such as a-z0-9")
    if odd := next((each for each in found if unseen(each)), None):
        raise ValueError(f"{ascii_quote(odd)} is a character that nobody sees; remove it")
    if twice := repeated(found):
        raise ValueError(f"{ascii_quote(twice)} occurs twice; remove one")
    return "".join(sorted(found))


def unseen(character: str) -> bool:
    """Return whether a character is a control, an end of a line, or reorders or hides text."""
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def read_pieces(
    listed: Sequence[str] | None, file: str | None, alphabet: str | None, longest: int, folder: SpecFolder
) -> tuple[str, ...]:
    """Return the pieces of a spec, in order: those of its list or file, and the characters of the alphabet.

    Without an alphabet, each character of a piece is a piece, too. ValueError if the file cannot be read, or a piece is
    none. The message begins with the key.
    """
    if listed is not None and file is not None:
        raise ValueError("pieces: give the list or pieces_file; remove one")
    with prefixed("alphabet: "):
        known = None if alphabet is None else frozenset(characters(alphabet))
    key, found = "pieces", list(listed or ())
    if file is not None:
        key = f"pieces_file: {plain(str(folder.path / file))}"
        with folder.file(file, "pieces_file") as path:
            found = read_text(path, MOST_VOCABULARY_BYTES).splitlines()
    if len(found) > MOST_PIECES:
        raise ValueError(f"{key}: {len(found):,} pieces, at most {MOST_PIECES:,} are allowed; keep the most frequent")
    for number, piece in enumerate(found, 1):
        if wrong := _wrong(piece, known, longest):
            at = f"{'entry' if file is None else 'line'} {number}, {ascii_quote(piece)}"
            raise ValueError(f"{key}: {at}: {wrong}; correct or remove it")
    if twice := repeated(found):
        raise ValueError(f"{key}: {ascii_quote(twice)} occurs twice; remove one")
    pieces = {*found, *(known or ()), *"".join(found)}
    if len(pieces) > MOST_PIECES:
        raise ValueError(f"{key}: {len(pieces):,} pieces and characters, at most {MOST_PIECES:,} are allowed")
    return tuple(sorted(pieces))


def _wrong(piece: str, known: frozenset[str] | None, longest: int) -> str:
    """Say what is wrong with a piece; nothing if it is right."""
    if not piece:
        return "it is empty"
    if any(map(unseen, piece)):
        return "it has a character that nobody sees"
    if (size := len(piece.encode())) > min(longest, LONGEST_PIECE):
        of = f"the longest string has {longest:,}" if longest < LONGEST_PIECE else f"{LONGEST_PIECE} are the most"
        return f"it has {size:,} bytes of UTF-8, and {of}"
    if known is not None and not known.issuperset(piece):
        return "it has a character that is not in alphabet"
    return ""
