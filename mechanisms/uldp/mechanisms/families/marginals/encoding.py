"""What a record says of several of its attributes at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.schemas.arrays import Values


@dataclass(frozen=True, eq=False)
class ViewEncoding(Encoding):
    """The symbol is the cell of the values in the table of a view, in row-major order: the last one varies first.

    Attributes:
        encodings: That of each attribute of the view, which draws nothing.
        sizes: The number of values of each.
    """

    encodings: tuple[Encoding, ...]
    sizes: tuple[int, ...]

    def device_form(self) -> DeviceForm:
        """See ``Encoding``."""
        encodings = [encoding.device_form() for encoding in self.encodings]
        return {"form": "view", "encodings": encodings, "sizes": list(self.sizes)}

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Values:
        """Return the cells, shape (n,)."""
        symbols = np.zeros(len(columns[0].values), dtype=np.int64)
        for encoding, size, column in zip(self.encodings, self.sizes, columns, strict=True):
            symbols = symbols * size + encoding.encode([column], randomness)
        return symbols
