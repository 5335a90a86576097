"""Local hashing in specs."""

from typing import ClassVar, Literal

from pydantic import Field

from uldp.mechanisms.assembly import of_shares
from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing
from uldp.mechanisms.kernels.hashing import MOST_BUCKETS, buckets_of_spec
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.specs.mechanism_family import PrivateSpec
from uldp.schemas.specs.variable import Variable


class LocalHashingSpec(PrivateSpec):
    """Optimized local hashing: randomized response on a hash of the value into ``buckets``."""

    title = "optimized local hashing (OLH)"
    literature: ClassVar = {"olh": "LH", "olh, or cohort-olh for strings that nobody lists": "CMS"}
    largest_size = 10_000
    large_domains = ("hashes each value for each report", "linear-olh or pgr")

    name: Literal["olh"]
    buckets: int = Field(default_factory=buckets_of_spec, ge=2, le=MOST_BUCKETS)

    def protocol(self, variable: Variable) -> LdpProtocol:
        """See ``MechanismFamily``."""
        return of_shares(variable, self, lambda sensitive, epsilon: LocalHashing(len(sensitive), epsilon, self.buckets))
