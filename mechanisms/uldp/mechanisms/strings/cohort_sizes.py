"""The sizes of mechanisms with cohorts of devices: which fit each other, and how many candidates they tell apart."""

from typing import Any

from pydantic import ValidationInfo

#: A statistic of cohorts has at most so many cells, and by default a quarter of them.
MOST_COHORT_CELLS = 1 << 24
_DEFAULT_CELLS = 1 << 22
#: The number of cohorts of ``cohort-olh``, unless the buckets of so many are too many cells.
DEFAULT_COHORTS = 4096

#: A spec asks about at most so many strings, because each estimate holds them.
MOST_CANDIDATES = 100_000
#: An estimate hashes each candidate for each cohort, at most so often: for some seconds.
_MOST_HASHES = 1 << 29
#: The candidates that are fitted together are at most this part of the independent cells. Least squares on as many adds
#: 1/(1 - 1/8), which is a seventh, to the variance.
_CELLS_OF_A_CANDIDATE = 8
#: So many candidates are all fitted together, if the cells allow it: a matrix of as many rows is inverted in a second.
_MOST_TOGETHER = 2048
#: So many of more candidates are fitted together, anew for each window. A table has the positions of those together.
_TOGETHER_OF_MORE, _MOST_POSITIONS = 512, 1 << 24


def most_candidates(cohorts: int, hashes: int) -> int:
    """Return the most candidates of a spec with so many cohorts, each of so many hash functions."""
    return max(min(_MOST_HASHES // (cohorts * hashes), MOST_CANDIDATES), 1)


def fitted_together(candidates: int, independent: int, functions: int) -> int:
    """Return how many candidates one fit has: all, or up to 512 of too many, by independent cells."""
    apart = max(min(independent // _CELLS_OF_A_CANDIDATE, _MOST_POSITIONS // functions), 1)
    return candidates if candidates <= min(apart, _MOST_TOGETHER) else min(apart, _TOGETHER_OF_MORE)


def whole_bytes(bits: int) -> int:
    """Check the number of bits of a Bloom filter."""
    if bits % 8:
        raise ValueError(f"must be a multiple of 8, such as {min(-(-bits // 8) * 8, 1024)}")
    return bits


def fits_bits(hashes: int, info: ValidationInfo) -> int:
    """Check the number of hash functions against the bits of a Bloom filter."""
    # If bits is wrong, it is missing here, and the error about it is enough.
    bits = info.data.get("bits", 1 << 16)
    if 2 * hashes > bits:
        raise ValueError(
            f"must be at most half of bits: two strings differ in up to {2 * hashes:,} bits, and there are {bits:,};"
            f" write {bits // 2} or fewer, 2 are usual"
        )
    return hashes


def default_cohorts(data: dict[str, Any]) -> int:
    """Return the number of cohorts for a number of buckets."""
    # If buckets is wrong, it is missing here, and the error about it is enough.
    buckets: int = data.get("buckets", 2)
    return min(DEFAULT_COHORTS, _DEFAULT_CELLS // buckets)


def fits_statistic(cohorts: int, info: ValidationInfo) -> int:
    """Check that a statistic can hold the cells of all cohorts."""
    return check_cells(cohorts, info.data.get("buckets", 2))


def check_cells(cohorts: int, buckets: int, key: str = "") -> int:
    """Return the number of cohorts, or raise ValueError, with a key, if a statistic cannot hold their cells."""
    if cohorts * buckets > MOST_COHORT_CELLS:
        raise ValueError(
            f"{key}{cohorts:,} cohorts of {buckets:,} buckets have more than {MOST_COHORT_CELLS:,} cells; write"
            f" {MOST_COHORT_CELLS // buckets} or fewer"
        )
    return cohorts
