"""The piecewise and the square wave mechanism in specs."""

from typing import ClassVar, Literal

from pydantic import Field

from uldp.mechanisms.assembly import kept
from uldp.mechanisms.encodings.number_encoding import NumberEncoding
from uldp.mechanisms.families.block.decoder import MAX_EMS_BINS, BlockDecoder
from uldp.mechanisms.families.block.randomizer import Block
from uldp.mechanisms.kernels.hashing import MOST_BUCKETS
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.specs.kinds import Number
from uldp.schemas.specs.mechanism_family import MisfitError, PrivateSpec
from uldp.schemas.specs.variable import Variable


class BlockSpec(PrivateSpec):
    """The piecewise and the square wave mechanism on a grid: outputs near the true bin are more probable.

    Attributes:
        bins: The number of bins of the range.
        width: The width of the block of more probable outputs.
    """

    title = "the piecewise and square wave mechanism"
    literature: ClassVar = {
        "block with width: piecewise": "piecewise PM",
        "block with width: square-wave": "square-wave SW",
    }
    not_ranked = "for numbers"
    domain_kind = "number"
    estimators = ("auto", "empirical", "ems")

    name: Literal["block"]
    bins: int = Field(default=1024, ge=2, le=MOST_BUCKETS)
    width: Literal["auto", "piecewise", "square-wave"] = "auto"

    def check_estimator(self, estimator: str) -> None:
        if estimator == "ems" and self.bins > MAX_EMS_BINS:
            raise MisfitError(
                "bins",
                f"estimator ems takes at most {MAX_EMS_BINS:,} bins, got {self.bins:,}; write bins: {MAX_EMS_BINS}, or"
                " remove estimator ems",
            )

    def protocol(self, variable: Variable) -> LdpProtocol:
        number = variable.of_kind(Number)
        block = Block(self.epsilon, self.bins, self.width)
        encoding = NumberEncoding(number.low, number.high, self.bins)
        mechanism = kept(self, block, lambda epsilon: Block(epsilon, self.bins, block.width))
        return LdpProtocol(encoding, mechanism, BlockDecoder(mechanism, number.low, number.high))
