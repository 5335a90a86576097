"""Subset selection for sets in specs."""

from typing import ClassVar, Literal, Self

from uldp.mechanisms.assembly import kept
from uldp.mechanisms.decoders.set_decoder import SetDecoder
from uldp.mechanisms.encodings.set_encoding import SetEncoding
from uldp.mechanisms.families.auto import BlockSize
from uldp.mechanisms.families.set_selection.randomizer import SetSelection
from uldp.mechanisms.families.set_selection.sizes import best_chosen
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.specs.kinds import Kind, Sets
from uldp.schemas.specs.mechanism_family import PrivateSpec
from uldp.schemas.specs.variable import Variable


class SetSelectionSpec(PrivateSpec):
    """Subset selection for sets: a report is a set of ``w`` of the items and dummies.

    Attributes:
        w: The size of a report; None, written auto, for the one with the least variance.
    """

    title = "subset selection for sets"
    literature: ClassVar = {
        "set-ss": "PrivSet PSFO pad-and-sample SVIM SVSM LDPMiner",
    }
    not_ranked = "for sets"
    domain_kind = "set"
    largest_size = 10_000
    large_domains = ("sends a bit for each item", "")

    name: Literal["set-ss"]
    w: BlockSize = None

    def of_domain(self, kind: Kind) -> Self:
        """Return this mechanism with the size of reports for which auto stands.

        Raises:
            ValueError: if no report has ``w`` symbols.
        """
        symbols = kind.values.size + kind.held
        if self.w is None:
            return self.model_copy(update={"w": best_chosen(symbols, kind.held, self.epsilon)})
        if self.w >= symbols:
            raise ValueError(
                f"w: a report has 1 to {symbols - 1:,} of the {symbols:,} symbols (items, and a dummy for each item of"
                f" at_most); write {symbols - 1:,} or less, or auto"
            )
        return self

    def protocol(self, variable: Variable) -> LdpProtocol:
        """See ``MechanismFamily``."""
        held, items = variable.of_kind(Sets).held, variable.size

        def build(epsilon: float) -> SetSelection:
            return SetSelection(items + held, epsilon, held, self.w)

        mechanism = build(self.epsilon)
        decoder = SetDecoder(
            mechanism.channel, items, chance_support=mechanism.chance_support, simultaneous=variable.simultaneous
        )
        return LdpProtocol(SetEncoding(items, held), kept(self, mechanism, build), decoder)
