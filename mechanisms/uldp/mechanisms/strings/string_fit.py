"""Goodness of fit of reports of one string: the cohorts are uniform, and each report is seen from its own cohort.

A cohort hashes the string by functions of its own, so that payloads of many cohorts are too many to count each. But the
bucket less that of the string, and the bits at and outside of its positions, have one law for all cohorts.
"""

from collections.abc import Iterator
from typing import cast

import numpy as np

from uldp.mechanisms.inference.goodness_of_fit import Check, binomial, chi_square
from uldp.mechanisms.mechanism import Mechanism
from uldp.mechanisms.randomizers.memoized import Memoized
from uldp.mechanisms.strings.bloom import BloomFilter
from uldp.mechanisms.strings.cohort_hashing import CohortHashing
from uldp.mechanisms.strings.cohorts import hash_positions
from uldp.schemas.arrays import Packed, Payloads, Symbols


def string_checks(mechanism: Mechanism, symbol: int, payloads: Payloads) -> Iterator[Check]:
    """Test whether n reports of one string follow the law of a mechanism for strings.

    - ``CohortHashing``: Pearson's chi-square of the buckets, each less that of the string modulo g.
    - ``BloomFilter``: the number of set bits at the position of each function is binomial with theta, and that of set
      bits with each number, over the cohorts in which it is no position, is binomial with q.

    Args:
        mechanism: The mechanism. One with a permanent response is tested as ``checks`` does.
        symbol: The symbol of the string.
        payloads: n reports that have passed ``possible``.
    """
    once = mechanism.once if isinstance(mechanism, Memoized) else mechanism
    if isinstance(once, CohortHashing):
        cohorts, buckets = np.divmod(payloads.astype(np.int64), once.buckets)
        yield _uniform(cohorts, once.cohorts)
        own = hash_positions(cohorts, np.array(symbol), 1, once.buckets)[:, 0]
        law = np.full(once.buckets, once.noise_probability / (once.buckets - 1))
        law[0] = 1 - once.noise_probability
        counts = np.bincount((buckets - own) % once.buckets, minlength=once.buckets)
        yield chi_square("buckets, less that of the string", "bucket", counts, law)
        return
    assert isinstance(once, BloomFilter)
    rows = cast(Packed, payloads)
    cohorts = once.cohorts_of(rows)
    yield _uniform(cohorts, once.cohorts)
    bits = once.bits_of(rows)
    positions = hash_positions(cohorts, np.array(symbol), once.hashes, once.bits)
    yield binomial(
        "bits of the string",
        lambda function: f"the bit of function {function} is set",
        np.take_along_axis(bits, positions, axis=1).sum(axis=0, dtype=np.int64),
        len(rows),
        np.full(once.hashes, once.theta),
    )
    others = np.ones_like(bits)
    np.put_along_axis(others, positions, 0, axis=1)
    yield binomial(
        "other bits",
        lambda bit: f"bit {bit} is set, where it is none of the string,",
        (bits & others).sum(axis=0, dtype=np.int64),
        others.sum(axis=0, dtype=np.int64),
        np.full(once.bits, once.q),
    )


def _uniform(cohorts: Symbols, number: int) -> Check:
    return chi_square("cohorts", "cohort", np.bincount(cohorts, minlength=number), np.full(number, 1 / number))
