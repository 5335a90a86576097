"""RAPPOR with Bloom filters in specs."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from uldp.mechanisms.assembly import of_strings
from uldp.mechanisms.families.bloom.randomizer import BloomFilter
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.strings.cohort_sizes import fits_bits, most_candidates, whole_bytes
from uldp.schemas.specs.mechanism_family import PrivateSpec, Theta
from uldp.schemas.specs.variable import Variable


class BloomSpec(PrivateSpec):
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
    not_ranked = "for strings"
    domain_kind = "strings"
    estimators = ("auto", "empirical")

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
