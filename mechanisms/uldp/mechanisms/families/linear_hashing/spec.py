"""Local hashing with linear functions in specs."""

from typing import Literal

from uldp.mechanisms.assembly import of_folds
from uldp.mechanisms.families.linear_hashing.randomizer import LinearHashing, best_linear_space
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.specs.mechanism_family import PrivateSpec
from uldp.schemas.specs.variable import Variable


class LinearHashingSpec(PrivateSpec):
    """Local hashing with linear functions over a finite field."""

    title = "optimized local hashing with linear functions"
    largest_size = 1 << 20
    large_domains = ("decodes by a transform of at most 2^23 numbers", "hrr")

    name: Literal["linear-olh"]

    def protocol(self, variable: Variable) -> LdpProtocol:
        return of_folds(
            variable, self, lambda size, epsilon: LinearHashing(size, epsilon, best_linear_space(size, self.epsilon))
        )
