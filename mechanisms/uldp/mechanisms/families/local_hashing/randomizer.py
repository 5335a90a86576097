"""A mechanism that reports a random hash function and the perturbed hash of the value: optimized local hashing.

Source: Wang et al., "Locally Differentially Private Protocols for Frequency Estimation" (USENIX Security 2017),
section 4.4.
"""

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.kernels.hashing import (
    MOST_BUCKETS,
    SEEDS,
    default_buckets,
    hash_symbols,
    scramble,
    states_of,
    steps_of,
)
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.cells import Cells
from uldp.mechanisms.protocol.device_form import DeviceForm, threshold
from uldp.mechanisms.protocol.mechanism import Guarantee, PayloadForm, PureMechanism, Randomness
from uldp.mechanisms.protocol.noise import UniformNoise
from uldp.schemas.arrays import Counts, Mask, Packed, Payloads, Symbols, Values

# tally holds two words, four bytes and a byte for each hash; those for this many hashes fit a core's cache.
_HASHES_AT_ONCE = 1 << 15

# A byte counts the supporting reports of so many.
_ROWS_AT_ONCE = 255


class SeededHashing(PureMechanism, UniformNoise):
    """The reports of local hashing: a seed of 32 bits, and one of g buckets of its hash function.

    A payload is 6 bytes: the seed in 4 and the bucket in 2, both little-endian. A report supports the symbols that its
    function hashes into its bucket. Each report costs the collector |Z| hashes, so |Z| is up to some thousand.
    """

    form = PayloadForm(width=6)
    partitions = False

    def __init__(self, size: int, buckets: int) -> None:
        self.buckets = self.answers = buckets
        if not 2 <= buckets <= MOST_BUCKETS:
            raise ValueError(f"local hashing has 2 to {MOST_BUCKETS} buckets, got {buckets}")
        self.size = self.statistic_size = size
        self.sensitive = np.ones(size, dtype=np.bool_)
        self.chance_support = 1 / buckets

    @property
    def log_payloads(self) -> float:
        return math.log(SEEDS * self.buckets)

    def uniform(self, n: int, randomness: Randomness) -> Packed:
        return pack(randomness.integers(0, SEEDS, n), randomness.integers(0, self.buckets, n))

    def possible(self, payloads: Payloads) -> Mask:
        possible: Mask = _unpack(cast(Packed, payloads))[1] < self.buckets
        return possible

    def describe(self, payload: int | bytes) -> str:
        seeds, buckets = _unpack(np.frombuffer(cast(bytes, payload), np.uint8)[np.newaxis])
        return f"seed {seeds[0]}, bucket {buckets[0]} of {self.buckets}"

    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[Cells]:
        order = np.argsort(groups, kind="stable")
        groups = groups[order]
        seeds, buckets = _unpack(cast(Packed, np.concatenate(parts))[order])
        counts: Counts = np.zeros((k, self.size), dtype=np.int64)
        columns = min(self.size, _HASHES_AT_ONCE)
        rows = min(max(_HASHES_AT_ONCE // columns, 1), _ROWS_AT_ONCE)
        for left in range(0, self.size, columns):
            symbols = np.arange(left, min(left + columns, self.size))
            for start in range(0, len(groups), rows):
                block = slice(start, start + rows)
                supports = self._supports(seeds[block], buckets[block], symbols)
                runs = np.flatnonzero(np.diff(groups[block], prepend=-1))
                for group, run in zip(groups[block][runs], np.split(supports, runs[1:]), strict=True):
                    counts[group, left : left + columns] += run.sum(axis=0, dtype=np.uint8)
        return list(counts)

    def _supports(self, seeds: Symbols, buckets: Symbols, symbols: Symbols) -> Packed:
        """Return 1 where a report supports a symbol, else 0; shape (reports, symbols)."""
        states = states_of(seeds)[:, np.newaxis] + steps_of(symbols)
        scramble(states, np.empty_like(states))
        # Bucket b holds the hashes in [low, high), which are multiples of 2^32 / g, rounded up. One comparison of
        # numbers modulo 2^32 tests both ends.
        low = -(-(buckets << 32) // self.buckets)
        high = -(-((buckets + 1) << 32) // self.buckets)
        hashes = states.astype(np.uint32)
        hashes -= low.astype(np.uint32)[:, np.newaxis]
        supports: Mask = hashes < (high - low).astype(np.uint32)[:, np.newaxis]
        return supports.view(np.uint8)


class LocalHashing(SeededHashing):
    """Local hashing with a seed of 32 bits: OLH if the number of buckets is ``default_buckets``, BLH if it is 2.

    The device draws a seed, uniform and independent of its symbol z. It hashes z into one of g buckets with the
    function of this seed, and perturbs the bucket by randomized response. With E = e^epsilon, it reports the seed and

        the bucket of z          with probability E/(E+g-1)
        any other bucket, each   with probability 1/(E+g-1)

    A report supports the symbols that its function hashes into its bucket: the true symbol with p = E/(E+g-1), and
    any other symbol with q = 1/g. Over random functions, these events are independent of each other, so the covariances
    of the support counts are those of independent bits.

    Guarantee: one report is epsilon-LDP. Whatever the seed, the likelihoods of a bucket under two true symbols differ
    by at most a factor E.

    q is 1/g over random functions, but seeds select only 2^32 functions. So for a fixed pair of symbols, the share of
    functions under which they collide differs from 1/g by about 2^-16 sqrt((1-1/g)/g), at g = 2 by 7.6e-6. The bias of
    an estimate from this error is at most about its standard error at 2^32 reports.
    """

    def __init__(self, size: int, epsilon: float, buckets: int | None = None) -> None:
        if size < 1:
            raise ValueError(f"a domain has at least one symbol, got size {size}")
        super().__init__(size, default_buckets(epsilon) if buckets is None else buckets)
        self.guarantee = Guarantee.of(self.sensitive, epsilon)
        self.noise_probability = (self.buckets - 1) / (self.buckets + math.expm1(epsilon))
        self.channel = Channel(
            np.full(size, 1 - self.noise_probability), np.full(size, 1 / self.buckets), independent_bits=True
        )

    def perturb(self, symbols: Values, randomness: Randomness) -> Packed:
        self.check_symbols(symbols)
        n = len(symbols)
        seeds = randomness.integers(0, SEEDS, n)
        noisy = randomness.random(n) < self.noise_probability
        shifts = randomness.integers(1, self.buckets, n)
        buckets = (hash_symbols(seeds, symbols, self.buckets) + noisy * shifts) % self.buckets
        return pack(seeds, buckets)

    def device_form(self) -> DeviceForm:
        return {"form": "hash", "buckets": self.buckets, "noise": threshold(self.noise_probability)}


def pack(seeds: npt.NDArray[np.integer], buckets: npt.NDArray[np.integer]) -> Packed:
    """Return payloads of seeds and buckets."""
    payloads = np.empty((len(seeds), 6), dtype=np.uint8)
    payloads[:, :4] = seeds.astype("<u4")[:, np.newaxis].view(np.uint8)
    payloads[:, 4:] = buckets.astype("<u2")[:, np.newaxis].view(np.uint8)
    return payloads


def _unpack(payloads: Packed) -> tuple[Symbols, Symbols]:
    payloads = np.ascontiguousarray(payloads)
    seeds = payloads[:, :4].copy().view("<u4")[:, 0]
    buckets = payloads[:, 4:].copy().view("<u2")[:, 0]
    return seeds.astype(np.int64), buckets.astype(np.int64)
