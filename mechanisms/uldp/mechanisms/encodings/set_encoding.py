"""Sets of items as symbols: each set has as many, so that nothing depends on how many items a user holds."""

from collections.abc import Sequence
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

    Args:
        size: k.
        held: l, from 1 to k.
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
    """Return l items of each of n sets, or all if it has fewer: shape (n, l), with -1 behind them.

    Args:
        sets: Shape (n, j): the items, and -1 behind them.
        drawn: Shape (n, l): integers below ``DRAWS``.
    """
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
