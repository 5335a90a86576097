"""Sets of strings: docs/client/sets.md."""

from math import exp, floor
from secrets import randbelow

from examples.recipes.hashes import bucket_of


def set_olh(symbols: set[int], held: int, epsilon: float, buckets: int, cohorts: int) -> int:
    """Report some of the symbols that a device holds: a cohort, and a bucket."""
    left, drawn = sorted(symbols), [randbelow(2**32) for _ in range(held)]
    if (m := len(left)) > held:
        for i, u in enumerate(drawn):
            other = i + (u * (m - i) >> 32)
            left[i], left[other] = left[other], left[i]
    cohort, u, anywhere = randbelow(cohorts), randbelow(2**53), randbelow(buckets)
    hit = sorted({bucket_of(cohort, z, buckets) for z in left[:held]})
    p = 1 / (held + (buckets - held) * exp(-epsilon))
    w = floor(2**53 * p * (1 - exp(-epsilon)) * ((buckets - held) / (buckets - len(hit))))
    return cohort * buckets + (hit[u // w] if u // w < len(hit) else anywhere)
