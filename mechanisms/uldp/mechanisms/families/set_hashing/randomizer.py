"""A mechanism that reports a hash function and one of its buckets, of devices that hold several symbols: Collision.

Source: Wang et al., "Differentially Private Numerical Vector Analyses in the Local and Shuffle Model" (arXiv
2304.04410), for the law. The dummies, by which all devices hit as many buckets, and the order of draws are ours.
"""

import math
from functools import lru_cache

import numpy as np

from uldp.mechanisms.families.local_hashing.randomizer import SeededHashing, pack
from uldp.mechanisms.families.set_selection.sizes import variance_of_items
from uldp.mechanisms.kernels.hashing import MOST_BUCKETS, SEEDS, hash_symbols
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.mechanism import Guarantee, Randomness
from uldp.schemas.arrays import Mask, Packed, Symbols, Values

#: The kind of a bucket is drawn by an integer below this.
DRAWS = 1 << 53
# perturb holds which buckets are hit, for so many buckets at once.
_AT_ONCE = 1 << 24


class SetHashing(SeededHashing):
    """Local hashing over D symbols, of which a device holds l different ones.

    The device draws a seed, uniform and independent of what it holds, and hashes its l symbols into t buckets with the
    function of this seed. If some of them collide, the lowest free buckets are hit too, so that l buckets are. With
    E = e^epsilon and O = lE + t - l, it reports the seed and

        each bucket that is hit     with probability E/O
        any other bucket, each      with probability 1/O

    A report supports the symbols that its function hashes into its bucket: a held one with p = E/O, and any other with
    q = 1/t, because its bucket is uniform and independent of all else. So a report supports two symbols with q^2 if the
    device holds neither, and else with p q.

    Guarantee: one report is epsilon-LDP for any two sets of l symbols. Whatever the seed, the probability of a bucket
    is E/O or 1/O. E/O is rounded down to a multiple of 2^-53, from a double, so the ratio may exceed E by a factor of
    about 1 + E 2^-52: 1 + 1e-7 at epsilon 20, the most that a spec takes.
    """

    def __init__(self, size: int, epsilon: float, held: int, buckets: int | None = None) -> None:
        """Build the mechanism over items and dummies; ValueError if t, ``best_buckets``, is l or less."""
        if not 1 <= held < size:
            raise ValueError(f"a device holds 1 to {size - 1} of {size} symbols, got {held}")
        if not epsilon > 0:
            raise ValueError(f"epsilon must be positive, got {epsilon}")
        super().__init__(size, best_buckets(held, epsilon) if buckets is None else buckets)
        if self.buckets <= held:
            raise ValueError(f"hashing of {held} symbols has more buckets, got {self.buckets}")
        self.held = held
        self.guarantee = Guarantee.of(self.sensitive, epsilon)
        # With E^-1 in place of E nothing overflows.
        self.hit = math.floor(DRAWS / (held + (self.buckets - held) * math.exp(-epsilon)))
        self.channel = Channel(
            p=np.full(size, self.hit / DRAWS), q=np.full(size, 1 / self.buckets), independent_bits=True, held=held
        )

    def perturb(self, symbols: Values, randomness: Randomness) -> Packed:
        symbols = self.held_symbols(symbols, self.held)
        n, rows = len(symbols), max(_AT_ONCE // self.buckets, 1)
        seeds, kinds = randomness.integers(0, SEEDS, n), randomness.integers(0, DRAWS, n)
        places = randomness.integers(0, self.buckets - self.held, n)
        # Which of the l buckets that are hit; l for another one.
        chosen = (kinds[:, np.newaxis] >= self.hit * np.arange(1, self.held + 1)).sum(axis=1)
        buckets = np.empty(n, dtype=np.int64)
        for start in range(0, n, rows):
            part = slice(start, start + rows)
            hit = self._hit(hash_symbols(seeds[part, np.newaxis], symbols[part], self.buckets))
            # The hit buckets in ascending order, and behind them the others.
            order = np.argsort(~hit, axis=1, kind="stable")
            place = np.where(chosen[part] < self.held, chosen[part], self.held + places[part])
            buckets[part] = order[np.arange(len(order)), place]
        return pack(seeds, buckets)

    def _hit(self, hashed: Symbols) -> Mask:
        """Return which buckets are hit, shape (n, t), l in each row, by the hashes of the held ones, shape (n, l)."""
        hit = np.zeros((len(hashed), self.buckets), dtype=np.bool_)
        hit[np.arange(len(hashed))[:, np.newaxis], hashed] = True
        missing = self.held - hit.sum(axis=1)
        hit |= np.cumsum(~hit, axis=1) <= missing[:, np.newaxis]
        return hit

    @property
    def uniform_probability(self) -> float:
        """The probability of a uniform bucket, t/O; otherwise it is a uniform one of those that are hit."""
        return self.buckets * (DRAWS - self.held * self.hit) / ((self.buckets - self.held) * DRAWS)

    def device_form(self) -> DeviceForm:
        return {"form": "hits", "buckets": self.buckets, "held": self.held, "hit": self.hit}


@lru_cache(maxsize=256)
def best_buckets(held: int, epsilon: float) -> int:
    """Return the number of buckets with the least mean variance of a share, over those of ``SHARES``, for l held."""
    buckets = np.arange(held + 1.0, MOST_BUCKETS + 1)
    variance = variance_of_items(1 / (held + (buckets - held) * math.exp(-epsilon)), 1 / buckets)
    return int(buckets[variance.argmin()])
