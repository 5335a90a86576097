"""Duchi et al.'s mechanism in specs."""

from typing import ClassVar, Literal

from uldp.mechanisms.assembly import kept
from uldp.mechanisms.encodings.number_encoding import NumberEncoding
from uldp.mechanisms.families.duchi.decoder import MeanDecoder
from uldp.mechanisms.families.duchi.randomizer import GRID, Duchi
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.specs.kinds import Number
from uldp.schemas.specs.mechanism_family import PrivateSpec
from uldp.schemas.specs.variable import Variable


class DuchiSpec(PrivateSpec):
    """Duchi et al.'s mechanism for the mean of a number, with reports of one bit."""

    title = "Duchi et al.’s mechanism for a mean"
    literature: ClassVar = {"duchi": "1BitMean", "duchi with lasting_epsilon": "α-rounding"}
    not_ranked = "for numbers"
    domain_kind = "number"
    estimators = ("auto", "empirical")

    name: Literal["duchi"]

    def protocol(self, variable: Variable) -> LdpProtocol:
        number = variable.of_kind(Number)
        # With memory, of the two ends alone, because the device keeps its rounding: so most changes need no new
        # response.
        grid = GRID if self.lasting_epsilon is None else 1
        mechanism = kept(self, Duchi(self.epsilon, grid), lambda epsilon: Duchi(epsilon, grid))
        encoding = NumberEncoding(number.low, number.high, grid)
        decoder = MeanDecoder(number.low, number.high, self.epsilon, self.lasting_epsilon)
        return LdpProtocol(encoding, mechanism, decoder)
