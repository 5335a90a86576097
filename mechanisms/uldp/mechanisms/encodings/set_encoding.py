"""Sets of items, and pairs of keys with numbers, as symbols, of which each device has as many; and their sizes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from uldp.mechanisms.encodings.number_encoding import NumberEncoding
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


class PairEncoding(Encoding):
    """Maps up to l pairs of k keys and numbers in [low, high] to l different symbols.

    The symbol of a pair is twice its key, plus a sign: 1 with the probability at which the number lies between low and
    high, else 0. So a number is the mean of its sign, mapped back; see ``NumberEncoding``. A device has one of both
    symbols of a key at the most. Dummies are 2k, 2k+1, ..., and of more than l pairs l are chosen as of a set: see
    ``SetEncoding``. Signs are drawn before the mechanism, so they spend no epsilon.
    """

    def __init__(self, size: int, held: int, low: float, high: float) -> None:
        self._size, self._held, self._sign = size, held, NumberEncoding(low, high, 1)

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Symbols:
        """Return ascending symbols of pairs (n, j, 2), the key -1 behind them; draws l integers, and l for signs."""
        keys, numbers = self._columns(columns)
        drawn = randomness.integers(0, DRAWS, (len(keys), self._held))
        places = chosen(np.where(keys >= 0, np.arange(keys.shape[1]), -1), drawn)
        there = places >= 0
        pairs = np.nonzero(there)[0], places[there]
        # Where there is no pair, any number takes its draw.
        of_places = np.full(places.shape, self._sign.low)
        of_places[there] = numbers[pairs]
        signs = self._sign.encode([_column(of_places)], randomness).reshape(places.shape)
        symbols = np.full(places.shape, -1, dtype=np.int64)
        symbols[there] = 2 * keys[pairs] + signs[there]
        return padded(symbols, 2 * self._size)

    def device_form(self) -> DeviceForm:
        ends = {"low": self._sign.low, "high": self._sign.high}
        return {"form": "signed", "size": self._size, "held": self._held, **ends}

    def law(self, columns: Sequence[Held], size: int) -> Floats:
        """Return how probably one device holds each symbol, shape (size,). A ValueError says that keys are drawn."""
        keys, numbers = self._columns(columns)
        there = keys[0] >= 0
        if there.sum() > self._held:
            raise ValueError(f"there are more than the {self._held:,} pairs that a device reports; take fewer")
        r = np.zeros(size)
        for key, number in zip(keys[0][there], numbers[0][there], strict=True):
            r[2 * key : 2 * key + 2] = self._sign.law([_column(np.array([number]))], 2)
        r[2 * self._size : 2 * self._size + self._held - int(there.sum())] = 1.0  # dummies
        return r

    def _columns(self, columns: Sequence[Held]) -> tuple[Symbols, Floats]:
        """Return the keys and the numbers, each of shape (n, j)."""
        (held,) = columns
        if (held.tags >= 0).any():
            raise ValueError("pairs have no tags, so no user can hide them behind one")
        pairs = np.asarray(held.values, dtype=np.float64)
        keys, numbers = pairs[:, :, 0].astype(np.int64), pairs[:, :, 1]
        if keys.size and not (keys.min() >= -1 and keys.max() < self._size):
            raise ValueError(f"a key is outside of the domain 0 to {self._size - 1}")
        if not np.isfinite(numbers).all():
            raise ValueError("a number is not finite")
        return keys, numbers


def _column(numbers: Floats) -> Held:
    flat = numbers.ravel()
    return Held(flat, np.full(len(flat), -1))
