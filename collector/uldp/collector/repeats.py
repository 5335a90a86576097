"""A sketch of the payloads of a window, which finds forgers who all send the same one.

Honest devices hardly ever send the same payload if there are many, as of long bit strings or of hashes with their
seeds. Each report counts in one of ``CELLS`` cells, which a fixed hash of its payload chooses. So the counts of windows
can be added, and equal payloads are in one cell. Whoever knows the hash can send different payloads of one cell, and so
raise the flag; or different payloads of many cells, which no test can tell from honest ones by their equality.

Of payloads that repeat, as symbols, the tests of the counts know as much as a sketch: there is none. Of strata, it has
the reports of those parts whose payloads are seldom.
"""

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from uldp.mechanisms.kernels.intervals import lower_tail
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Mask, Packed, Words

#: The number of cells.
CELLS = 1 << 12
#: A sketch is kept where no cell has a larger share of the honest reports.
MOST_OF_A_CELL = 0.005
# The natural logarithm of the probability that some payloads fill one cell with more than ``cell_share`` says.
_SURE = 28.0
_BITS = 12
# Odd numbers: multiples of the golden ratio, one for each word of a payload.
_GOLDEN = 0x9E3779B97F4A7C15
# Hashes of so many bytes of payloads at once stay in the processor's cache.
_BYTES_AT_ONCE = 1 << 18


def cell_share(mechanism: Mechanism) -> float:
    """Bound the share of honest reports that a cell has.

    A cell has the share 1/m of all payloads, chosen by a hash that no device follows. So its probability X under the
    payloads' law has the mean 1/m, and a variance below c/m, where c is the probability of a repeat; no payload adds
    more than its own probability, at most b. By Bernstein's inequality X exceeds 1/m + t, with L = 28 and
    t = L b/3 + sqrt((L b/3)^2 + 2 L c/m), with a probability below e^-28: some cell of a spec's, of 4,096, with one
    below 3e-9.
    """
    far = _SURE * mechanism.largest_probability / 3
    return 1 / CELLS + far + math.sqrt(far**2 + 2 * _SURE * mechanism.repeat_probability / CELLS)


@dataclass(frozen=True, eq=False)
class Sketched:
    """Which reports of a mechanism are in a sketch."""

    mechanism: Mechanism
    share: float  # the share of honest reports that a cell has at the most
    parts: Mask | None = None  # shape (S,): which parts of strata are in it; None if all are, or the mechanism has none

    @classmethod
    def of(cls, mechanism: Mechanism) -> "Sketched | None":
        """Return the sketch of a mechanism; None if honest payloads repeat too often, as kept ones."""
        if mechanism.form.width is None or mechanism.memory:
            return None
        of_each = {id(part): cell_share(part) for part in mechanism.parts or (mechanism,)}
        shares = np.array([of_each[id(part)] for part in mechanism.parts or (mechanism,)])
        seldom = shares <= MOST_OF_A_CELL
        if not seldom.any():
            return None
        return cls(mechanism, float(shares[seldom].max()), None if seldom.all() else seldom)

    def rows(self, payloads: Packed) -> Mask:
        """Return which payloads are in the sketch, shape (n,)."""
        if self.parts is None:
            return np.ones(len(payloads), dtype=np.bool_)
        return self.parts[cast(Strata, self.mechanism).part_numbers(payloads)]


def payload_cells(payloads: Packed) -> np.ndarray[tuple[int], np.dtype[np.uint16]]:
    """Return the cell of each of n payloads of bytes, shape (n, width)."""
    hashed = np.empty(len(payloads), dtype=np.uint64)
    rows = max(1, _BYTES_AT_ONCE // payloads.shape[1])
    for start in range(0, len(payloads), rows):
        hashed[start : start + rows] = _sums(payloads[start : start + rows])
    for _ in range(2):
        hashed ^= hashed >> np.uint64(32)
        hashed *= np.uint64(_GOLDEN)
    return (hashed >> np.uint64(64 - _BITS)).astype(np.uint16)


def _sums(payloads: Packed) -> Words:
    """Return the sum of the words of each payload, each times an odd number of its own; the last two may overlap."""
    n, width = payloads.shape
    if width < 8:
        padded = np.zeros((n, 8), dtype=np.uint8)
        padded[:, :width] = payloads
        return padded.view(np.uint64)[:, 0]
    words = width // 8
    factors = np.array([_GOLDEN * (2 * i + 1) % (1 << 64) for i in range(words + 1)], dtype=np.uint64)
    sums: Words = payloads[:, : 8 * words].view(np.uint64) @ factors[:words]
    if width % 8:
        sums += payloads[:, -8:].view(np.uint64)[:, 0] * factors[words]
    return sums


def repeats_p_value(most: int, n: int, share: float) -> float:
    """Bound the probability that some cell has so many of n honest reports, by Bonferroni."""
    return min(1.0, CELLS * lower_tail(n - most, n, 1 - share))
