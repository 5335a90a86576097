"""Randomized response in specs, from no obfuscation to the utility-optimized form."""

from collections.abc import Sequence
from typing import ClassVar, Literal, Self

from uldp.mechanisms.assembly import SharesSpec, of_shares
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.arrays import Mask
from uldp.schemas.specs.domains import Tag
from uldp.schemas.specs.estimators import OF_SYMBOLS
from uldp.schemas.specs.mechanism_family import MechanismFamily, MisfitError
from uldp.schemas.specs.values import Values
from uldp.schemas.specs.variable import Variable


class IdentitySpec(MechanismFamily):
    """No obfuscation and no privacy, for tests."""

    title = "identity, no obfuscation"
    like_with_tags = "urr"
    no_budget = "identity gives no privacy, so nothing bounds what it spends"
    not_in_levels = "it gives no privacy at any level; choose rr"
    not_ranked = "no privacy"
    estimators = OF_SYMBOLS
    refuses: ClassVar = {
        "epsilon": "identity gives no privacy and takes no epsilon; remove epsilon or choose a mechanism"
    }
    epsilon: ClassVar[None] = None
    lasting_epsilon: ClassVar[None] = None
    share: ClassVar[None] = None

    name: Literal["identity"]

    def protocol(self, variable: Variable) -> LdpProtocol:
        return of_shares(variable, self, lambda sensitive, _: RandomizedResponse(sensitive, None))


class _Response(SharesSpec):
    estimators = OF_SYMBOLS
    like_with_tags = "urr"

    def build(self, sensitive: Mask, epsilon: float) -> RandomizedResponse:
        return RandomizedResponse(sensitive, epsilon)


class _OfTwo(_Response):
    def fitted(self, values: Values, sensitive: Mask, tags: Sequence[Tag]) -> Self:
        if values.size != 2:
            raise MisfitError("domain", f"{self.name} is for two values, got {values.size}; use rr or urr")
        return self


class RandomizedResponseSpec(_Response):
    """Randomized response."""

    title = "randomized response (RR)"
    literature: ClassVar = {"rr": "k-RR KRR GRR DE PBP", "rr, or any other mechanism with sensitive: all": "ε-LDP LDP"}

    name: Literal["rr"]


class WarnerSpec(_OfTwo):
    """Randomized response for two values."""

    title = "Warner’s randomized response"
    literature: ClassVar = {"warner": "W-RR BRR"}
    not_ranked = "rr of two values"

    name: Literal["warner"]


class MangatSpec(_OfTwo):
    """Mangat's randomized response for two values, one of them sensitive."""

    title = "Mangat’s randomized response"
    utility_optimized = True
    not_ranked = "urr of two values"

    name: Literal["mangat"]

    def fitted(self, values: Values, sensitive: Mask, tags: Sequence[Tag]) -> Self:
        fitted = super().fitted(values, sensitive, tags)
        if sensitive.sum() != 1:
            raise MisfitError("sensitive", "mangat needs exactly one sensitive value, for example sensitive: [1]")
        return fitted


class UtilityOptimizedResponseSpec(_Response):
    """Utility-optimized randomized response."""

    title = "utility-optimized randomized response (uRR)"
    literature: ClassVar = {
        "urr with tags": "PUM",
        "urr, or another mechanism that takes a list of sensitive values": "ULDP OSLDP OSRR",
    }
    utility_optimized = True
    takes_tags = True
    answers_zones = True

    name: Literal["urr"]
