"""The encoding of a record: the device draws the attribute that it reports."""

from collections.abc import Sequence

import numpy as np

from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Floats, Values


class RecordEncoding(Encoding):
    """Draws one variable for each device, and encodes the value of this variable for ``Strata``.

    The drawn variable is independent of the values. The encoding encodes all variables and discards all results but
    one. So neither its draws nor its errors depend on the drawn variable.

    Args:
        encodings: One for each part of the mechanism.
        strata: The mechanism.

    Raises:
        ValueError: if the numbers of encodings and parts differ.
    """

    def __init__(self, encodings: Sequence[Encoding], strata: Strata) -> None:
        if len(encodings) != len(strata.parts):
            raise ValueError(f"there are {len(strata.parts)} parts, but {len(encodings)} encodings")
        self._encodings = tuple(encodings)
        self._strata = strata

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Values:
        """Return the symbol of each device in its drawn variable, shape (n,).

        Raises:
            ValueError: if a value of any variable is outside of its domain, drawn or not, or if columns are missing or
                differ in length.
        """
        symbols = np.stack(
            [encoding.encode([column], randomness) for encoding, column in zip(self._encodings, columns, strict=True)]
        )
        n = symbols.shape[1]
        drawn = self._strata.draw(n, randomness)
        return symbols[drawn, np.arange(n)] + self._strata.first_symbols[drawn]

    def law(self, columns: Sequence[Held], size: int) -> Floats:
        """Return the distributions of all variables behind each other, times the shares; see ``Encoding``."""
        sizes = [part.size for part in self._strata.parts]
        variables = zip(self._encodings, columns, sizes, self._strata.shares, strict=True)
        return np.concatenate([share * each.law([column], own) for each, column, own, share in variables])
