"""Keys with numbers as symbols: each pair is its key with one of two signs, and each device has as many symbols."""

from collections.abc import Sequence

import numpy as np

from uldp.mechanisms.encodings.number_encoding import NumberEncoding
from uldp.mechanisms.encodings.set_encoding import DRAWS, chosen, padded
from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.schemas.arrays import Floats, Symbols


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
