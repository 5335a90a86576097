"""A sketch of the payloads of a window, which finds forgers who all send the same one.

Honest devices hardly ever send the same payload if there are many, as of long bit strings or of hashes with their
seeds. Each report counts in one of ``CELLS`` cells, which a fixed hash of its payload chooses. So the counts of windows
can be added, and equal payloads are in one cell. Whoever knows the hash can send different payloads of one cell, and so
raise the flag; or different payloads of many cells, which no test can tell from honest ones by their equality.

Of payloads that repeat, as symbols, the tests of the counts know as much as a sketch: there is none.
"""

import math

import numpy as np

from uldp.mechanisms.kernels.intervals import lower_tail
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.schemas.arrays import Packed, Words

#: The number of cells.
CELLS = 1 << 12
#: Two honest reports have the same payload with this probability at most, where a sketch is kept.
SELDOM = 1e-9
_BITS = 12
# Odd numbers: multiples of the golden ratio, one for each word of a payload.
_GOLDEN = 0x9E3779B97F4A7C15
# Hashes of so many bytes of payloads at once stay in the processor's cache.
_BYTES_AT_ONCE = 1 << 18


def is_sketched(mechanism: Mechanism) -> bool:
    """Return whether honest payloads of a mechanism repeat so seldom that equal ones are improbable.

    A device that keeps its response may send it again.
    """
    return mechanism.form.width is not None and not mechanism.memory and mechanism.repeat_probability <= SELDOM


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


def repeats_p_value(most: int, n: int, repeat_probability: float) -> float:
    """Bound the probability that some cell has so many of n honest reports, by Bonferroni.

    A cell has the share 1/m of all payloads, chosen by a hash that no device follows. So its probability X under the
    payloads' law has the mean 1/m and a variance below c/m, where c is the probability of a repeat, and no payload has
    more than sqrt(c). By Bernstein's inequality X exceeds 1/m + 24 sqrt(c) with a probability below e^-36.

    Args:
        most: The largest count of a cell.
        n: The number of reports.
        repeat_probability: See ``Mechanism``; at most ``SELDOM``.
    """
    share = 1 / CELLS + 24 * math.sqrt(repeat_probability)
    return min(1.0, CELLS * lower_tail(n - most, n, 1 - share))
