"""Local hashing in specs."""

from typing import ClassVar, Literal

from pydantic import Field

from uldp.mechanisms.assembly import SharesSpec
from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing
from uldp.mechanisms.kernels.hashing import MOST_BUCKETS, buckets_of_spec
from uldp.schemas.arrays import Mask


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
