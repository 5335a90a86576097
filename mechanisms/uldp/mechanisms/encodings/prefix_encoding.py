"""The encoding of strings by their first pieces, for a part of strata."""

from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.strings.cohorts import OTHER, StringEncoding, of_length, string_symbol
from uldp.mechanisms.strings.spelling import Spelling


def prefix_symbol(text: str, number: int, pieces: int, spelling: Spelling, longest: int) -> int:
    """Return the symbol of the first ``pieces`` pieces of a string: of all of them, joined, if it has fewer.

    It is another one for each ``number`` of a length, and for the whole string. A string that the pieces do not spell
    has the symbol ``OTHER``, whatever it is. Strings are refused as by ``string_symbol``.
    """
    string_symbol(text, longest)  # refuses it, whatever its prefix is
    own = spelling.split(text)
    return OTHER if own is None else of_length(number, "".join(own[:pieces]), longest)


class PrefixEncoding(StringEncoding):
    """Maps strings to the symbols of their prefixes; see ``prefix_symbol`` for the arguments."""

    def __init__(self, number: int, pieces: int, spelling: Spelling, longest: int) -> None:
        super().__init__(longest)
        self._number, self._pieces, self._spelling = number, pieces, spelling

    def device_form(self) -> DeviceForm:
        """See ``Encoding``; the pieces themselves are in the domain of the column."""
        return {"form": "prefix", "number": self._number, "pieces": self._pieces, "longest": self._longest}

    def symbol(self, text: str) -> int:
        """See the base class."""
        return prefix_symbol(text, self._number, self._pieces, self._spelling, self._longest)
