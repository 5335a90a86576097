"""The encoding of strings by their first pieces, for a part of strata."""

from collections.abc import Sequence

import numpy as np

from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.mechanisms.strings.cohorts import OTHER, of_length, string_symbol
from uldp.mechanisms.strings.spelling import Spelling
from uldp.schemas.arrays import Symbols


def prefix_symbol(text: str, number: int, pieces: int, spelling: Spelling, longest: int) -> int:
    """Return the symbol of the first pieces of a string: of all of them, joined, if it has fewer.

    It is another one for each length, and for the whole string. A string that the pieces do not spell has the symbol
    ``OTHER``, whatever it is.

    Args:
        text: The string.
        number: The number of the length: 0, 1, ...
        pieces: The number of pieces of this length.
        spelling: The pieces.
        longest: The most bytes of a string.

    Raises:
        ValueError: if it is longer, or no valid Unicode. The message does not show it.
    """
    string_symbol(text, longest)  # refuses it, whatever its prefix is
    own = spelling.split(text)
    return OTHER if own is None else of_length(number, "".join(own[:pieces]), longest)


class PrefixEncoding(Encoding):
    """Maps strings to the symbols of their prefixes; see ``prefix_symbol``.

    Args:
        number: The number of the length.
        pieces: The number of pieces of a prefix.
        spelling: The pieces.
        longest: The most bytes of a string.
    """

    def __init__(self, number: int, pieces: int, spelling: Spelling, longest: int) -> None:
        self._of = number, pieces, spelling, longest

    def device_form(self) -> DeviceForm:
        """See ``Encoding``."""
        # The pieces are in the domain of the column.
        number, pieces, _, longest = self._of
        return {"form": "prefix", "number": number, "pieces": pieces, "longest": longest}

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
        symbols = {text: prefix_symbol(text, *self._of) for text in set(texts)}
        return np.fromiter(map(symbols.__getitem__, texts), dtype=np.int64, count=len(texts))
