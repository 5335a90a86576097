"""A few bits of a unary encoding in specs."""

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from uldp.mechanisms.assembly import kept
from uldp.mechanisms.encodings.strata_encoding import StrataEncoding, StratumSource
from uldp.mechanisms.families.bit_flip.decoder import DesignDecoder
from uldp.mechanisms.families.bit_flip.randomizer import DesignEncoding, FlippedBits, design_widths
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.randomizers.strata import strata_of
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Mask
from uldp.schemas.specs.domains import Tag
from uldp.schemas.specs.mechanism_family import MisfitError, PrivateSpec
from uldp.schemas.specs.values import Values
from uldp.schemas.specs.variable import Variable

#: The most designs.
MAX_DESIGNS = 1024
#: The bits of the example, unless so few make too many designs. Fewer cost accuracy, and with a bit for each value it
#: is sue.
_BITS = 64


class BitFlipSpec(PrivateSpec):
    """A few bits of a unary encoding, those of one design.

    Attributes:
        bits: The number of values of a design, which is that of the bits of a report.
    """

    title = "a few bits of a unary encoding (ωBitFlip)"
    literature: ClassVar = {"bit-flip": "ωBitFlip dBitFlip", "bit-flip with lasting_epsilon": "ωBitFlipPM dBitFlipPM"}
    not_in_levels = "levels pool counts of all their reports, and a value has those of its design alone; choose sue"
    estimators = ("auto", "empirical")
    needs: ClassVar = {"bits": "the number of bits of a report, for example bits: 16", **PrivateSpec.needs}

    name: Literal["bit-flip"]
    bits: int = Field(ge=1)

    @classmethod
    def example(cls, size: int) -> dict[str, Any]:
        return {"bits": min(max(_BITS, -(-size // MAX_DESIGNS)), size)}

    def fitted(self, values: Values, sensitive: Mask, tags: Sequence[Tag]) -> Self:
        least = -(-values.size // MAX_DESIGNS)
        if self.bits > values.size:
            raise MisfitError(
                "bits",
                f"there are only {values.size:,} values; write {values.size} or less, or choose sue for all bits",
            )
        if self.bits < least:
            raise MisfitError(
                "bits",
                f"{self.bits:,} bits of {values.size:,} values need more than {MAX_DESIGNS:,} designs; write {least} or"
                " more",
            )
        return self

    def protocol(self, variable: Variable) -> LdpProtocol:
        widths = design_widths(variable.size, self.bits)
        parts = [kept(self, FlippedBits(width, self.epsilon), partial(FlippedBits, width)) for width in widths]
        strata = strata_of(parts, noun="design")
        pum = Pum.of(variable)
        designs = [DesignEncoding(pum, number * self.bits, width) for number, width in enumerate(widths)]
        encoding = StrataEncoding([StratumSource(design, (0,)) for design in designs], strata)
        return LdpProtocol(encoding, strata, DesignDecoder(strata, simultaneous=variable.simultaneous))
