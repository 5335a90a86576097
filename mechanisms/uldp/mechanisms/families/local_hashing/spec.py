"""Local hashing in specs, of values, and by cohorts of strings that nobody lists; and RAPPOR with Bloom filters."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from uldp.mechanisms.assembly import SharesSpec, of_strings
from uldp.mechanisms.families.local_hashing.bloom import BloomFilter
from uldp.mechanisms.families.local_hashing.cohorts import CohortHashing
from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing
from uldp.mechanisms.kernels.hashing import MOST_BUCKETS, buckets_of_spec
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.strings.cohort_sizes import (
    default_cohorts,
    fits_bits,
    fits_statistic,
    most_candidates,
    whole_bytes,
)
from uldp.schemas.arrays import Mask
from uldp.schemas.specs.mechanism_family import PrivateSpec, Theta
from uldp.schemas.specs.variable import Variable


class LocalHashingSpec(SharesSpec):
    """Optimized local hashing: randomized response on a hash of the value into ``buckets``."""

    title = "optimized local hashing (OLH)"
    literature: ClassVar = {"olh": "LH", "olh, or cohort-olh for strings that nobody lists": "CMS"}
    largest_size = 10_000
    large_domains = ("hashes each value for each report", "linear-olh or pgr")

    name: Literal["olh"]
    buckets: int = Field(default_factory=buckets_of_spec, ge=2, le=MOST_BUCKETS)

    def build(self, sensitive: Mask, epsilon: float) -> LocalHashing:
        return LocalHashing(len(sensitive), epsilon, self.buckets)


class StringsSpec(PrivateSpec):
    """A mechanism for strings that nobody lists."""

    not_ranked = "for strings"
    domain_kind = "strings"
    estimators = ("auto", "empirical")


class CohortsSpec(StringsSpec):
    """A mechanism by which a report is a bucket of one of ``cohorts`` hash functions."""

    buckets: int = Field(default_factory=buckets_of_spec, ge=2, le=MOST_BUCKETS)
    cohorts: Annotated[int, Field(ge=1, le=1 << 16), AfterValidator(fits_statistic)] = Field(
        default_factory=default_cohorts
    )

    @property
    def most_candidates(self) -> int:
        return most_candidates(self.cohorts, 1)


class CohortHashingSpec(CohortsSpec):
    """Optimized local hashing with ``cohorts`` hash functions in place of a seed, for strings of an open domain."""

    title = "optimized local hashing with cohorts"
    literature: ClassVar = {"cohort-olh, or rr for values that the domain lists": "O-RR cohorts"}

    name: Literal["cohort-olh"]

    def protocol(self, variable: Variable) -> LdpProtocol:
        return of_strings(variable, self, lambda epsilon: CohortHashing(epsilon, self.buckets, self.cohorts))


class BloomSpec(StringsSpec):
    """RAPPOR with Bloom filters: each cohort of devices has hash functions of its own.

    Attributes:
        bits: The number of bits of a Bloom filter, h.
        hashes: The number of hash functions of a cohort.
        cohorts: The number of cohorts.
        theta: The probability that a bit of the string's filter is set; by default that of RAPPOR, with equal noise on
            all bits.
    """

    title = "RAPPOR with Bloom filters"
    literature: ClassVar = {"bloom": "O-RAPPOR"}

    name: Literal["bloom"]
    bits: Annotated[int, Field(ge=8, le=1024), AfterValidator(whole_bytes)] = 128
    hashes: Annotated[int, Field(ge=1, validate_default=True), AfterValidator(fits_bits)] = 2
    cohorts: int = Field(default=64, ge=1, le=1 << 13)
    theta: Theta | None = None

    @property
    def most_candidates(self) -> int:
        return most_candidates(self.cohorts, self.hashes)

    def protocol(self, variable: Variable) -> LdpProtocol:
        sizes = self.bits, self.hashes, self.cohorts
        return of_strings(variable, self, lambda epsilon: BloomFilter(epsilon, *sizes, self.theta))
