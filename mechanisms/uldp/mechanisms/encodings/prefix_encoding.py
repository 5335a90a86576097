"""The encoding of strings by their first pieces, for a part of strata."""

from collections.abc import Sequence

import numpy as np

from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.mechanisms.strings.cohorts import OTHER, string_symbol
from uldp.mechanisms.strings.spelling import Spelling
from uldp.schemas.arrays import Symbols


def prefix_symbol(text: str, length: int, spelling: Spelling, longest: int) -> int:
    """Return the symbol of the first pieces of a string: of all of them, joined, if it has fewer.

    A string that the pieces do not spell has the symbol ``OTHER``, whatever it is.

    Args:
        text: The string.
        length: The number of pieces.
        spelling: The pieces.
        longest: The most bytes of a string.

    Raises:
        ValueError: if it is longer, or no valid Unicode. The message does not show it.
    """
    whole = string_symbol(text, longest)
    pieces = spelling.split(text)
    if pieces is None:
        return OTHER
    return whole if len(pieces) <= length else string_symbol("".join(pieces[:length]), longest)


class PrefixEncoding(Encoding):
    """Maps strings to the symbols of their prefixes; see ``prefix_symbol``.

    Args:
        length: The number of pieces of a prefix.
        spelling: The pieces.
        longest: The most bytes of a string.
    """

    def __init__(self, length: int, spelling: Spelling, longest: int) -> None:
        self._length, self._spelling, self._longest = length, spelling, longest

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Symbols:
        """Return the symbol of each string's prefix, shape (n,). Draws nothing.

        Raises:
            ValueError: if a string is too long or no valid Unicode, or a user wants to hide it behind a tag.
        """
        (held,) = columns
        if (held.tags >= 0).any():
            raise ValueError("a string has no tags, so no user can hide it behind one")
        texts: list[str] = held.values.tolist()
        # In a simulation, many devices hold one string.
        symbols = {text: prefix_symbol(text, self._length, self._spelling, self._longest) for text in set(texts)}
        return np.fromiter(map(symbols.__getitem__, texts), dtype=np.int64, count=len(texts))
