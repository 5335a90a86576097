"""Local hashing for sets in specs."""

from typing import ClassVar, Literal, Self

from pydantic import Field

from uldp.mechanisms.assembly import kept
from uldp.mechanisms.decoders.set_decoder import SetDecoder
from uldp.mechanisms.encodings.set_encoding import SetEncoding
from uldp.mechanisms.families.auto import BlockSize
from uldp.mechanisms.families.set_hashing.randomizer import SetHashing, best_buckets
from uldp.mechanisms.families.sized_sets import SizedSetsSpec
from uldp.mechanisms.kernels.hashing import MOST_BUCKETS
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.specs.kinds import Kind, Sets
from uldp.schemas.specs.variable import Variable


class SetHashingSpec(SizedSetsSpec):
    """Local hashing for sets: a report is a hash function, and one of its ``buckets``.

    Attributes:
        buckets: The number of buckets; None, written auto, for the one with the least variance.
    """

    title = "local hashing for sets"
    literature: ClassVar = {"set-olh": "Collision"}
    not_ranked = "for sets"
    domain_kind = "set"
    largest_size = 100_000
    large_domains = ("hashes each item for each report", "")

    name: Literal["set-olh"]
    buckets: BlockSize = Field(default=None)

    def of_domain(self, kind: Kind) -> Self:
        """Return this mechanism with the number of buckets for which auto stands.

        Raises:
            ValueError: if there are too few or too many buckets.
        """
        if self.buckets is None:
            return self.model_copy(update={"buckets": best_buckets(kind.held, self.epsilon)})
        if not kind.held < self.buckets <= MOST_BUCKETS:
            raise ValueError(f"buckets: must be more than at_most, {kind.held}, and at most {MOST_BUCKETS:,}, or auto")
        return self

    def protocol(self, variable: Variable) -> LdpProtocol:
        """See ``MechanismFamily``."""
        held, items = variable.of_kind(Sets).held, variable.size

        def build(epsilon: float) -> SetHashing:
            return SetHashing(items + held, epsilon, held, self.buckets)

        mechanism = build(self.epsilon)
        decoder = SetDecoder(
            mechanism.channel, items, chance_support=mechanism.chance_support, simultaneous=variable.simultaneous
        )
        return self.sized(LdpProtocol(SetEncoding(items, held), kept(self, mechanism, build), decoder), variable)
