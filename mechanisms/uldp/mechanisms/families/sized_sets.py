"""Sets in specs of which some users report the size."""

import math

from pydantic import Field

from uldp.mechanisms.encodings.size_encoding import SizeEncoding, SizeRanges
from uldp.mechanisms.encodings.strata_encoding import StrataEncoding, StratumSource
from uldp.mechanisms.families.least_variance import symbols_part
from uldp.mechanisms.families.sized_decoder import SizedDecoder
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.randomizers.strata import strata_of
from uldp.schemas.specs.mechanism_family import PrivateSpec
from uldp.schemas.specs.variable import Variable


class SizedSetsSpec(PrivateSpec):
    """A mechanism for sets.

    Attributes:
        sizes: The share of the users who report the size of their set in place of its items; None for none.
    """

    sizes: float | None = Field(default=None, ge=0.001, le=0.5)

    def sized(self, protocol: LdpProtocol, variable: Variable) -> LdpProtocol:
        """Return the protocol of items, or with ``sizes`` that of items and sizes."""
        if self.sizes is None:
            return protocol
        ranges = ranges_of(variable.kind.held, self.epsilon)
        mechanism, of_sizes = symbols_part(variable, self, ranges.count, "rr")
        strata = strata_of([protocol.mechanism, mechanism], [1 - self.sizes, self.sizes], noun="question")
        sources = [StratumSource(each, (0,)) for each in (protocol.encoding, SizeEncoding(ranges, variable.size))]
        decoder = SizedDecoder(protocol.decoder, of_sizes, ranges, strata)
        return LdpProtocol(StrataEncoding(sources, strata), strata, decoder)


def ranges_of(held: int, epsilon: float) -> SizeRanges:
    """Return the narrowest ranges of sizes for which randomized response is the best mechanism.

    It has less variance than others below about 3E + 2 symbols; see ``least_variance``.
    """
    most = max(math.ceil(3 * math.exp(epsilon) + 2) - 1, 2)
    width = 1
    while SizeRanges(held, width).count > most:
        width += 1
    return SizeRanges(held, width)
