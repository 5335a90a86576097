"""Summation with histogram encoding in specs."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator

from uldp.mechanisms.families.bit_flip.randomizer import FlippedBits
from uldp.mechanisms.families.summation.decoder import SummationDecoder
from uldp.mechanisms.families.summation.randomizer import MIN_EPSILON, Summation
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.mechanisms.randomizers.memoized import Memoized
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.specs.budget import protects
from uldp.schemas.specs.mechanism_family import PrivateSpec
from uldp.schemas.specs.variable import Variable


def _fits_two_bytes(epsilon: float) -> float:
    if not epsilon >= MIN_EPSILON:
        raise ValueError(f"must be {MIN_EPSILON} or more: with less, noise exceeds two bytes; choose sue")
    return epsilon


class SummationSpec(PrivateSpec):
    """Summation with histogram encoding."""

    title = "summation with histogram encoding (SHE)"
    literature: ClassVar = {"she": "HE"}
    not_in_levels = (
        "no count of its reports supports a value, and levels pool such counts; choose sue, which has less noise"
    )
    estimators = ("auto", "empirical", "norm-sub")
    largest_size = 100_000
    large_domains = ("sends two bytes for each value", "linear-olh, pgr or hrr")

    name: Literal["she"]
    epsilon: Annotated[float, AfterValidator(_fits_two_bytes), AfterValidator(protects)]

    def protocol(self, variable: Variable) -> LdpProtocol:
        pum = Pum.of(variable)
        mechanism: Mechanism = Summation(variable.size, self.epsilon)
        if self.lasting_epsilon is not None:
            mechanism = Memoized(FlippedBits(variable.size, self.lasting_epsilon), mechanism)
        return LdpProtocol(pum, mechanism, SummationDecoder(mechanism, pum, simultaneous=variable.simultaneous))
