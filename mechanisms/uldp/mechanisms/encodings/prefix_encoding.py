"""The encoding of strings by their first pieces, for a part of strata."""

from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.strings.cohorts import OTHER, StringEncoding, of_length, string_symbol
from uldp.mechanisms.strings.spelling import Spelling


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
