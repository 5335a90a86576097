"""Strings as symbols: a set of strings has as many as any other, and a string that of its first pieces."""

from typing import cast

import numpy as np

from uldp.mechanisms.encodings.set_encoding import SetEncoding, chosen, strings_there
from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.encoding import Encoding, Held, NoDraws
from uldp.mechanisms.strings.cohorts import OTHER, STRING_SYMBOLS, StringEncoding, of_length, string_symbol
from uldp.mechanisms.strings.spelling import Spelling
from uldp.schemas.arrays import Symbols, Texts

# Behind all symbols of strings.
_LAST = np.iinfo(np.int64).max


class StringSetEncoding(SetEncoding):
    """Maps sets of strings to l different symbols: those of up to l of the strings, and ``STRING_SYMBOLS`` and more.

    Of a set of more than l strings, l are chosen uniformly at random as by ``SetEncoding``, of the symbols in ascending
    order. Strings with one symbol, as those with one prefix, then become one. A symbol from ``STRING_SYMBOLS`` on
    stands for no string, so that all sets have as many symbols.
    """

    _noun = "strings"

    def __init__(self, one: Encoding, held: int) -> None:
        super().__init__(STRING_SYMBOLS, held)
        self._one = one

    def device_form(self) -> DeviceForm:
        return {"form": "strings", "of": self._one.device_form(), "held": self._held}

    def _kept(self, held: Held, drawn: Symbols) -> Symbols:
        texts = cast(Texts, held.values)
        there = strings_there(texts)
        symbols, texts = np.full(there.shape, _LAST), texts[there]
        symbols[there] = self._one.encode([Held(texts, np.full(len(texts), -1))], NoDraws())
        symbols.sort(axis=1)
        kept = np.sort(chosen(np.where(symbols == _LAST, -1, symbols), drawn), axis=1)
        kept[:, 1:][kept[:, 1:] == kept[:, :-1]] = -1
        return kept


class PrefixEncoding(StringEncoding):
    """Maps strings to the symbols of their first ``pieces`` pieces: of all of them, joined, if they have fewer.

    A symbol is another one for each ``number`` of a length, and for the whole string. A string that the pieces do not
    spell has the symbol ``OTHER``, whatever it is. Strings are refused as by ``string_symbol``.
    """

    def __init__(self, number: int, pieces: int, spelling: Spelling, longest: int) -> None:
        super().__init__(longest)
        self._number, self._pieces, self._spelling = number, pieces, spelling

    def device_form(self) -> DeviceForm:
        return {"form": "prefix", "number": self._number, "pieces": self._pieces, "longest": self._longest}

    def symbol(self, text: str) -> int:
        string_symbol(text, self._longest)  # refuses it, whatever its prefix is
        own = self._spelling.split(text)
        return OTHER if own is None else of_length(self._number, "".join(own[: self._pieces]), self._longest)
