"""Sets of strings as symbols: as many for each set, of which some stand for no string."""

from collections.abc import Sequence
from typing import cast

import numpy as np

from uldp.mechanisms.encodings.set_encoding import DRAWS, First, chosen, padded
from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.encoding import Encoding, Held, NoDraws
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.mechanisms.strings.cohorts import STRING_SYMBOLS
from uldp.schemas.arrays import Mask, Symbols, Texts

# Behind all symbols of strings.
_LAST = np.iinfo(np.int64).max


class StringSetEncoding(Encoding):
    """Maps sets of strings to l different symbols: those of up to l of the strings, and ``STRING_SYMBOLS`` and more.

    Of a set of more than l strings, l are chosen uniformly at random as by ``SetEncoding``, of the symbols in ascending
    order. Strings with one symbol, as those with one prefix, then become one. A symbol from ``STRING_SYMBOLS`` on
    stands for no string, so that all sets have as many symbols.

    Args:
        one: Maps a string to its symbol. It draws nothing.
        held: l, 1 or more.
    """

    def __init__(self, one: Encoding, held: int) -> None:
        self._one, self._held = one, held

    def device_form(self) -> DeviceForm:
        """See ``Encoding``."""
        return {"form": "strings", "of": self._one.device_form(), "held": self._held}

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Symbols:
        """See ``Encoding``; symbols are in ascending order. Draws l integers for each device."""
        (held,) = columns
        if (held.tags >= 0).any():
            raise ValueError("a set has no tags, so no user can hide it behind one")
        symbols = self._symbols(held)
        drawn = randomness.integers(0, DRAWS, (len(symbols), self._held))
        kept = np.sort(chosen(symbols, drawn), axis=1)
        kept[:, 1:][kept[:, 1:] == kept[:, :-1]] = -1
        return padded(kept, STRING_SYMBOLS)

    def _symbols(self, held: Held) -> Symbols:
        """Return the symbols of all strings of each set in ascending order, and -1 behind them; the shape stays."""
        texts = cast(Texts, held.values)
        there = strings_there(texts)
        symbols, texts = np.full(there.shape, _LAST), texts[there]
        symbols[there] = self._one.encode([Held(texts, np.full(len(texts), -1))], NoDraws())
        symbols.sort(axis=1)
        return np.where(symbols == _LAST, -1, symbols)

    def of_one(self, columns: Sequence[Held]) -> Symbols:
        """See ``Encoding``."""
        (held,) = columns
        if strings_there(cast(Texts, held.values)).sum() > self._held:
            raise ValueError(
                f"the set has more than the {self._held:,} strings that a device reports; take a smaller one"
            )
        return np.asarray(self.encode(columns, First())[0], dtype=np.int64)


def strings_there(sets: Texts) -> Mask:
    """Return where there are strings, and no None behind them."""
    return np.asarray(np.not_equal(sets, np.array(None, dtype=np.object_)), dtype=np.bool_)
