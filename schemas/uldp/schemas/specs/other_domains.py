"""The mechanisms for numbers and for strings, as models of specs."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from uldp.schemas.specs.cohorts import default_cohorts, fits_bits, fits_statistic, most_candidates, whole_bytes
from uldp.schemas.specs.mechanism_family import MOST_BUCKETS, PrivateSpec, Theta, best_buckets

#: The estimator "ems" needs a number of bins up to this: its errors take a matrix of that many rows and columns.
MAX_EMS_BINS = 1024


class DuchiSpec(PrivateSpec):
    """Duchi et al.'s mechanism for the mean of a number, with reports of one bit."""

    domain_kind = "number"
    estimators = ("auto", "empirical")

    name: Literal["duchi"]


class BlockSpec(PrivateSpec):
    """The piecewise and the square wave mechanism on a grid: outputs near the true bin are more probable.

    Attributes:
        bins: The number of bins of the range.
        width: The width of the block of more probable outputs.
    """

    domain_kind = "number"
    estimators = ("auto", "empirical", "ems")

    name: Literal["block"]
    bins: int = Field(default=1024, ge=2, le=MOST_BUCKETS)
    width: Literal["auto", "piecewise", "square-wave"] = "auto"


class BloomSpec(PrivateSpec):
    """RAPPOR with Bloom filters: each cohort of devices has hash functions of its own.

    Attributes:
        bits: The number of bits of a Bloom filter, h.
        hashes: The number of hash functions of a cohort.
        cohorts: The number of cohorts.
        theta: The probability that a bit of the string's filter is set; by default that of RAPPOR, with equal noise on
            all bits.
    """

    domain_kind = "strings"
    estimators = ("auto", "empirical")

    name: Literal["bloom"]
    bits: Annotated[int, Field(ge=8, le=1024), AfterValidator(whole_bytes)] = 128
    hashes: Annotated[int, Field(ge=1, validate_default=True), AfterValidator(fits_bits)] = 2
    cohorts: int = Field(default=64, ge=1, le=1 << 13)
    theta: Theta | None = None

    @property
    def most_candidates(self) -> int:
        """The most strings whose shares the statistic tells apart."""
        return most_candidates(self.cohorts, self.bits, self.hashes)


class CohortHashingSpec(PrivateSpec):
    """Optimized local hashing with ``cohorts`` hash functions in place of a seed, for strings of an open domain."""

    domain_kind = "strings"
    estimators = ("auto", "empirical")

    name: Literal["cohort-olh"]
    buckets: int = Field(default_factory=best_buckets, ge=2, le=MOST_BUCKETS)
    cohorts: Annotated[int, Field(ge=1, le=1 << 16), AfterValidator(fits_statistic)] = Field(
        default_factory=default_cohorts
    )

    @property
    def most_candidates(self) -> int:
        """The most strings whose shares the statistic tells apart."""
        return most_candidates(self.cohorts, self.buckets - 1, 1)
