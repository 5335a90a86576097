"""The number of items or pairs that a device holds as a symbol, for the part of a collection that asks for it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uldp.mechanisms.encodings.set_encoding import sizes_of
from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.schemas.arrays import Symbols


@dataclass(frozen=True)
class SizeRanges:
    """Ranges of the sizes of sets, of which one begins above l: 0 to 2l, where 2l stands for all larger ones.

    Attributes:
        held: l, how many items a device reports.
        width: How many sizes a range has; the first one and the last may have fewer.
    """

    held: int
    width: int

    @property
    def shift(self) -> int:
        """What is added to a size before the division by the width."""
        return -(self.held + 1) % self.width

    @property
    def count(self) -> int:
        """The number of ranges."""
        return self.of(2 * self.held) + 1

    @property
    def first_cut(self) -> int:
        """The first range of the sets of which a device reports a part."""
        return self.of(self.held + 1)

    def of(self, size: int) -> int:
        """Return the range of a size."""
        return (min(size, 2 * self.held) + self.shift) // self.width

    @property
    def names(self) -> tuple[str, ...]:
        """The ranges as text, such as ``0 to 2`` and ``6 or more``.

        >>> SizeRanges(3, 2).names
        ('0 to 1', '2 to 3', '4 to 5', '6 or more')
        """
        lows = [max(number * self.width - self.shift, 0) for number in range(self.count)]
        ends = [low - 1 for low in lows[1:]]
        within = [f"{low}" if low == end else f"{low} to {end}" for low, end in zip(lows, ends, strict=False)]
        return (*within, f"{lows[-1]} or more")


class SizeEncoding(Encoding):
    """Maps sets, or pairs, of k items or keys to the range of their size. It draws nothing."""

    def __init__(self, ranges: SizeRanges, size: int) -> None:
        self._ranges, self._size = ranges, size

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Symbols:
        """See ``Encoding``; the column has sets of items or of strings, shape (n, j), or pairs, shape (n, j, 2)."""
        values = columns[0].values
        sizes = sizes_of(values if values.ndim == 2 else values[:, :, 0])
        held, shift, width = self._ranges.held, self._ranges.shift, self._ranges.width
        return np.asarray((np.minimum(sizes, 2 * held) + shift) // width, dtype=np.int64)

    def device_form(self) -> DeviceForm:
        of = self._ranges
        return {"form": "size", "size": self._size, "most": 2 * of.held, "shift": of.shift, "width": of.width}
