"""The error to expect of a published estimator, by simulation: each forecast is of one truth.

``equal_shares`` flatters estimators that pull shares towards each other; ``falling_shares`` does not.
"""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.decoder import SEED
from uldp.schemas.arrays import Counts, Floats

#: The most symbols of a simulation; more would take seconds.
LARGEST = 1 << 16


def equal_shares(size: int) -> Floats:
    """Return equal shares of all symbols, shape (size,)."""
    return np.full(size, 1 / size)


def falling_shares(size: int) -> Floats:
    """Return shares in the ratio of 1, 1/2, 1/3, ... (Zipf's law), shape (size,), in a random order that is fixed."""
    weights = 1 / np.arange(1, size + 1)
    return np.random.default_rng(SEED).permutation(weights / weights.sum())


def draw_counts(channel: Channel, r: Floats, n: int, rng: Generator) -> Counts:
    """Draw the support counts of n reports of true symbols distributed as ``r``; normal ones of several symbols."""
    if channel.independent_bits:
        held = rng.multinomial(n, r / r.sum()) if channel.held == 1 else rng.binomial(n, r)
        return np.asarray(rng.binomial(held, channel.p) + rng.binomial(n - held, channel.q))
    if channel.blocks is not None:
        law = channel.blocks.law(r)
        return channel.blocks.fold(np.asarray(rng.multinomial(n, law / law.sum()), dtype=np.int64))
    m = channel.support_probability(r)
    if channel.may_support_none:
        return np.asarray(rng.multinomial(n, np.append(m, max(1 - m.sum(), 0.0)))[:-1])
    if channel.supported == 1:
        return np.asarray(rng.multinomial(n, m / m.sum()))
    sets = channel.q > 0
    # The reports that name a symbol, and last all sets.
    drawn = rng.multinomial(n, np.append(m[~sets], max(1 - m[~sets].sum(), 0.0)))
    counts = np.zeros(channel.size, dtype=np.int64)
    counts[~sets], of_sets = drawn[:-1], int(drawn[-1])
    counts[sets] = _draw_members(m[sets] / (1 - m[~sets].sum()), of_sets, channel.supported, rng)
    return counts


def _draw_members(m: Floats, n: int, each: int, rng: Generator) -> Counts:
    """Draw how many of n sets of ``each`` members have each member; ``m`` are the probabilities."""
    noise = rng.normal(0, np.sqrt(n * m * (1 - m)))
    counts: Counts = np.clip(np.rint(n * m + noise - noise.mean()), 0, n).astype(np.int64)
    while missing := n * each - int(counts.sum()):
        possible = np.flatnonzero(counts < n if missing > 0 else counts > 0)
        counts[rng.permutation(possible)[: abs(missing)]] += np.sign(missing)
    return counts


def one_simulation_text(
    simulate: Callable[[Floats, int, str, Generator], Floats], size: int, estimator: str, n: int, stderr: Floats
) -> str:
    """Say the l1 errors of one simulation, of falling and of equal shares, and the largest standard error."""
    rng = np.random.default_rng(SEED)
    falling, equal = (
        min(float(np.abs(simulate(r, n, estimator, rng)).sum()), 2.0)
        for r in (falling_shares(size), equal_shares(size))
    )
    l1 = f"l1 {falling:.3g} if the shares fall as 1, 1/2, 1/3, ..., {equal:.3g} if they are equal"
    worst = f"standard error of the unbiased estimate at most {stderr.max():.3g} a symbol"
    return f"of {estimator} at n = {n:,}, in one simulation: {l1}; {worst}"


def rounded(counts: Floats, total: int) -> Counts:
    """Round counts that sum to ``total`` so that they still do: those with the largest fractions are rounded up."""
    floors = np.floor(counts).astype(np.int64)
    missing = int(np.clip(total - floors.sum(), 0, len(counts)))
    floors[np.argsort(floors - counts)[:missing]] += 1
    return floors
