"""Local hashing of strings in specs."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from uldp.mechanisms.assembly import of_strings
from uldp.mechanisms.families.cohort_hashing.randomizer import CohortHashing
from uldp.mechanisms.kernels.hashing import MOST_BUCKETS, buckets_of_spec
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.strings.cohort_sizes import default_cohorts, fits_statistic, most_candidates
from uldp.schemas.specs.mechanism_family import PrivateSpec
from uldp.schemas.specs.variable import Variable


class CohortHashingSpec(PrivateSpec):
    """Optimized local hashing with ``cohorts`` hash functions in place of a seed, for strings of an open domain."""

    title = "optimized local hashing with cohorts"
    literature: ClassVar = {"cohort-olh, or rr for values that the domain lists": "O-RR cohorts"}
    not_ranked = "for strings"
    domain_kind = "strings"
    estimators = ("auto", "empirical")

    name: Literal["cohort-olh"]
    buckets: int = Field(default_factory=buckets_of_spec, ge=2, le=MOST_BUCKETS)
    cohorts: Annotated[int, Field(ge=1, le=1 << 16), AfterValidator(fits_statistic)] = Field(
        default_factory=default_cohorts
    )

    @property
    def most_candidates(self) -> int:
        return most_candidates(self.cohorts, 1)

    def protocol(self, variable: Variable) -> LdpProtocol:
        return of_strings(variable, self, lambda epsilon: CohortHashing(epsilon, self.buckets, self.cohorts))
