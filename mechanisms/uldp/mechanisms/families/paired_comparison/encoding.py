"""What a ranking says about one pair of candidates."""

from collections.abc import Sequence
from dataclasses import dataclass

from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.schemas.arrays import Values


@dataclass(frozen=True)
class PairEncoding(Encoding):
    """The symbol is 0 if the first candidate of a pair stands above the second, else 1.

    Attributes:
        first: The index of the first candidate.
        second: The index of the second.
    """

    first: int
    second: int

    def device_form(self) -> DeviceForm:
        """See ``Encoding``."""
        return {"form": "pair", "first": self.first, "second": self.second}

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Values:
        """Return the symbols, shape (n,), of the places of all candidates, shape (n, candidates)."""
        (places, _) = columns[0]
        symbols: Values = (places[:, self.second] < places[:, self.first]).astype("int64")
        return symbols
