"""Strings that nobody lists beforehand: their symbols, and the positions to which a cohort of devices hashes them."""

import hashlib
from collections.abc import Sequence

import numpy as np

from uldp.mechanisms.kernels.hashing import hash_symbols
from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.schemas.arrays import Symbols, Values

_DIGEST_BYTES = 6
#: The number of symbols of a domain of strings.
STRING_SYMBOLS = 1 << 8 * _DIGEST_BYTES

#: The symbol of all strings that the pieces of a spelling do not spell.
OTHER = 0

# No byte of UTF-8 is this one, so no two strings are filled to the same bytes.
_FILL = b"\xff"


def string_symbol(text: str, longest: int) -> int:
    """Return the symbol of a string: the first 6 bytes, little-endian, of SHA-256 of its UTF-8 filled up with FF.

    Strings are compared byte by byte: two forms of one text in Unicode have two symbols. All strings of a domain are
    filled to one length, so that hashing takes the same time for each. Two of 10,000 strings share a symbol with a
    probability of 2e-7; somebody who searches for such strings finds some. ValueError if it is longer, or no valid
    Unicode. The message does not show it.
    """
    # Not raised from the error of Python, because that holds the string.
    try:
        filled = text.encode().ljust(longest, _FILL)
    except UnicodeEncodeError:
        raise ValueError("the value is not valid Unicode") from None
    if len(filled) > longest:
        raise ValueError(f"the value has more than {longest:,} bytes of UTF-8")
    return int.from_bytes(hashlib.sha256(filled).digest()[:_DIGEST_BYTES], "little")


def of_length(number: int, prefix: str, longest: int) -> int:
    """Return the symbol of a prefix of a length.

    The symbols of a string differ from length to length, so that it collides with other strings each time. Else what
    looks frequent by its collisions at one length would look so at all of them, and in the test of whole strings.
    """
    return string_symbol(prefix, longest + 1 + number)


class StringEncoding(Encoding):
    """Maps strings to their symbols; see ``string_symbol``."""

    def __init__(self, longest: int) -> None:
        self._longest = longest

    def device_form(self) -> DeviceForm:
        return {"form": "string", "longest": self._longest}

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Symbols:
        (held,) = columns
        if (held.tags >= 0).any():
            raise ValueError("a string has no tags, so no user can hide it behind one")
        texts: list[str] = held.values.tolist()
        # In a simulation, many devices hold one string.
        symbols = {text: self.symbol(text) for text in set(texts)}
        return np.fromiter(map(symbols.__getitem__, texts), dtype=np.int64, count=len(texts))

    def symbol(self, text: str) -> int:
        """Return the symbol of a string."""
        return string_symbol(text, self._longest)


def hash_positions(cohorts: Values, symbols: Values, hashes: int, size: int) -> Symbols:
    """Return positions below ``size``; function j of cohort c is ``hash_symbols`` with the seed c * hashes + j."""
    seeds = np.asarray(cohorts, dtype=np.int64)[..., np.newaxis] * hashes + np.arange(hashes)
    return hash_symbols(seeds, np.asarray(symbols)[..., np.newaxis], size)
