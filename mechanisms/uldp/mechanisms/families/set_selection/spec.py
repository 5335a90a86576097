"""Subset selection for sets in specs."""

from functools import partial
from typing import ClassVar, Literal, Self

from uldp.mechanisms.assembly import of_sets
from uldp.mechanisms.decoders.pair_decoder import PairDecoder
from uldp.mechanisms.decoders.set_decoder import SetDecoder
from uldp.mechanisms.encodings.set_encoding import PairEncoding, SetEncoding
from uldp.mechanisms.families.auto import BlockSize
from uldp.mechanisms.families.set_selection.randomizer import SetSelection
from uldp.mechanisms.families.set_selection.sizes import best_chosen
from uldp.mechanisms.families.sized_sets import SizedSetsSpec
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.specs.kinds import Kind, Pairs, Sets
from uldp.schemas.specs.variable import Variable


class SetSelectionSpec(SizedSetsSpec):
    """Subset selection for sets: a report is a set of ``w`` of the items and dummies.

    Attributes:
        w: The size of a report; None, written auto, for the one with the least variance.
    """

    title = "subset selection for sets"
    literature: ClassVar = {
        "set-ss": "PrivSet PSFO pad-and-sample SVIM SVSM LDPMiner",
        "set-ss, over pairs": "PCKV PCKV-GRR PCKV-UE PrivKV PrivKVM PrivKVM+ CondiFre",
    }
    not_ranked = "for sets"
    domain_kind = "set"
    also_for = ("pairs",)
    largest_size = 10_000
    large_domains = ("sends a bit for each item", "set-olh for sets")

    name: Literal["set-ss"]
    w: BlockSize = None

    def of_domain(self, kind: Kind) -> Self:
        """See ``MechanismFamily``; ValueError if each report has a symbol that the device holds, whatever it holds."""
        assert isinstance(kind, Sets)
        symbols, signed = kind.symbols + kind.held, isinstance(kind, Pairs)
        if self.w is None:
            return self.model_copy(update={"w": best_chosen(symbols, kind.held, self.epsilon, signed=signed)})
        if self.w > kind.symbols:
            raise ValueError(
                f"w: a report has 1 to {kind.symbols:,} of the {symbols:,} symbols (one for each item, or two for each"
                " key of pairs, and a dummy for each of at_most): a larger one always has one of those that a device"
                f" holds, and says nothing; write {kind.symbols:,} or less, or auto"
            )
        return self

    def protocol(self, variable: Variable) -> LdpProtocol:
        kind = variable.of_kind(Sets)
        held, size = kind.held, kind.symbols + kind.held

        def build(epsilon: float) -> SetSelection:
            return SetSelection(size, epsilon, held, self.w)

        if isinstance(kind, Pairs):
            pairs = PairEncoding(variable.size, held, kind.low, kind.high)
            keys = partial(PairDecoder, names=variable.labels, low=kind.low, high=kind.high)
            return self.sized(of_sets(variable, self, build, pairs, keys), variable)
        items = partial(SetDecoder, items=variable.size)
        return self.sized(of_sets(variable, self, build, SetEncoding(variable.size, held), items), variable)
