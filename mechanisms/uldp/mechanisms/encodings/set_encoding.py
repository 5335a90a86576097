"""Sets of items as symbols, of which each set has as many; and the number of its items as a symbol."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.schemas.arrays import Counts, Floats, Mask, Symbols, Texts, Values

#: An item of a set that is too large is drawn by an integer below this.
DRAWS = 1 << 32


class SetEncoding(Encoding):
    """Maps sets of up to l of k items to l different symbols: the items, and dummies in place of missing ones.

    A set of m < l items gets the dummies k, k+1, ..., k+l-m-1. So dummy j is held by the users of l-1-j items or fewer.
    A shared dummy would have l(e^epsilon - 1) + 1 in place of e^epsilon for its ratio, as often as it is there.

    Of a set of more than l items, l are chosen uniformly at random: item number j of the choice is one of those that
    are left, at the place u (items left)/2^32, rounded down, for an integer u below 2^32. The device draws l such
    integers whatever it holds.
    """

    _noun = "items"

    def __init__(self, size: int, held: int) -> None:
        self._size, self._held = size, held

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Symbols:
        """See ``Encoding``; symbols are in ascending order. Draws l integers for each device."""
        return self._symbols(columns, randomness.integers(0, DRAWS, (len(columns[0].values), self._held)))

    def _symbols(self, columns: Sequence[Held], drawn: Symbols) -> Symbols:
        (held,) = columns
        if (held.tags >= 0).any():
            raise ValueError("a set has no tags, so no user can hide it behind one")
        return padded(self._kept(held, drawn), self._size)

    def _kept(self, held: Held, drawn: Symbols) -> Symbols:
        """Return the symbols of the items that are chosen by the drawn integers, shape (n, l), and -1 for no item."""
        sets = np.asarray(cast(Values, held.values), dtype=np.int64)
        if sets.size and not (sets.min() >= -1 and sets.max() < self._size):
            raise ValueError(f"an item is outside of the domain 0 to {self._size - 1}")
        return chosen(sets, drawn)

    def device_form(self) -> DeviceForm:
        return {"form": "set", "size": self._size, "held": self._held}

    def of_one(self, columns: Sequence[Held]) -> Symbols:
        """See ``Encoding``. A ValueError says that the symbols are drawn."""
        if sizes_of(columns[0].values)[0] > self._held:
            raise ValueError(
                f"the set has more than the {self._held:,} {self._noun} that a device reports; take a smaller one"
            )
        return np.asarray(self._symbols(columns, np.zeros((1, self._held), dtype=np.int64))[0])


def chosen(sets: Symbols, drawn: Symbols) -> Symbols:
    """Return l items of sets (n, j), or all if fewer, -1 behind them, by ``drawn`` (n, l), below ``DRAWS``."""
    n, most = drawn.shape
    rows, there = np.arange(n), (sets >= 0).sum(axis=1)
    left = np.full((n, max(sets.shape[1], most)), -1, dtype=np.int64)
    left[:, : sets.shape[1]] = sets
    for place in range(most):
        # Of sets that are small enough, all items stay where they are.
        free = np.where(there > most, there - place, 1)
        taken = place + (drawn[:, place] * free >> 32)
        left[rows, taken], left[:, place] = left[:, place].copy(), left[rows, taken]
    return left[:, :most]


def padded(sets: Symbols, size: int) -> Symbols:
    """Return sets with a different dummy, ``size`` or more, for each -1, in ascending order; the shape stays."""
    missing = sets < 0
    return np.sort(np.where(missing, size - 1 + np.cumsum(missing, axis=1), sets), axis=1)


def sizes_of(sets: Values | Floats | Texts) -> Counts:
    """Return how many items, or strings, each set has, shape (n,)."""
    there = strings_there(cast(Texts, sets)) if sets.dtype == np.object_ else cast(Values, sets) >= 0
    return np.asarray(there.sum(axis=1), dtype=np.int64)


def strings_there(sets: Texts) -> Mask:
    """Return where there are strings, and no None behind them."""
    return np.asarray(np.not_equal(sets, np.array(None, dtype=np.object_)), dtype=np.bool_)


@dataclass(frozen=True)
class SizeRanges:
    """Ranges of the sizes of sets, of which one begins above l: 0 to 2l, where 2l stands for all larger ones."""

    held: int  # l, how many items a device reports
    width: int  # how many sizes a range has; the first one and the last may have fewer

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
