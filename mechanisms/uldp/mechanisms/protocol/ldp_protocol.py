"""A protocol of local differential privacy: encode and perturb on the device, tally and decode at the collector.

Wang et al. (USENIX Security 2017, section 3) define a protocol by these steps for frequencies; here they carry other
estimates too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from uldp.mechanisms.protocol.decoder import Decoder
from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.mechanism import Guarantee, Mechanism, Randomness
from uldp.schemas.arrays import Payloads


@dataclass(frozen=True, eq=False)
class LdpProtocol:
    """All steps: what a device holds becomes a symbol of Z and a payload; payloads become a statistic and tables.

    If reports name a slice, ``of_slice`` is the protocol of each slice.
    """

    encoding: Encoding
    mechanism: Mechanism
    decoder: Decoder
    of_slice: "LdpProtocol | None" = None

    @property
    def of_all(self) -> "LdpProtocol":
        """The protocol of the table of all users, whose cells are the sum of those of all slices."""
        return self.of_slice or self

    def at(self, level: str | None) -> "LdpProtocol":
        """Return the protocol of a device that has chosen a level of privacy; see ``Encoding.at``."""
        return replace(self, encoding=self.encoding.at(level))

    @property
    def guarantee(self) -> Guarantee:
        """The promise about one report of this device."""
        return self.encoding.guarantee or self.mechanism.guarantee

    def perturb(self, columns: Sequence[Held], randomness: Randomness) -> Payloads:
        """Return the payloads that n devices send; see ``Encoding.encode`` for the columns."""
        return self.mechanism.perturb(self.encoding.encode(columns, randomness), randomness)
