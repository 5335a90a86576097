"""Mechanisms for sets of items, and for sets of strings that nobody lists, in specs."""

from functools import partial
from typing import ClassVar, Literal, Self

from pydantic import Field

from uldp.mechanisms.assembly import of_sets
from uldp.mechanisms.decoders.pair_decoder import PairDecoder
from uldp.mechanisms.decoders.set_decoder import SetDecoder
from uldp.mechanisms.encodings.set_encoding import PairEncoding, SetEncoding
from uldp.mechanisms.encodings.string_encodings import StringSetEncoding
from uldp.mechanisms.families.auto import BlockSize
from uldp.mechanisms.families.cohort_hashing.randomizer import CohortSetHashing
from uldp.mechanisms.families.sets.randomizer import SetHashing, SetSelection, best_buckets
from uldp.mechanisms.families.sets.sized import SizedSetsSpec
from uldp.mechanisms.families.sets.sizes import best_chosen
from uldp.mechanisms.kernels.hashing import MOST_BUCKETS
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.strings.candidate_decoder import CandidateDecoder
from uldp.mechanisms.strings.cohort_sizes import DEFAULT_COHORTS, check_cells, default_cohorts, most_candidates
from uldp.mechanisms.strings.cohorts import StringEncoding
from uldp.schemas.specs.estimators import EstimatorName
from uldp.schemas.specs.kinds import Kind, Pairs, Sets, StringSets
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


class SetHashingSpec(SizedSetsSpec):
    """Local hashing for sets: a report is a hash function, and one of its ``buckets``.

    Attributes:
        buckets: The number of buckets; None, written auto, for the one with the least variance.
        cohorts: The number of hash functions, of strings that nobody lists; None for the default. Of listed items, a
            report has one of its own.
    """

    title = "local hashing for sets"
    literature: ClassVar = {"set-olh": "Collision"}
    also_for = (StringSets.name,)
    largest_size = 100_000
    large_domains = ("hashes each item for each report", "")

    name: Literal["set-olh"]
    buckets: BlockSize = Field(default=None)
    cohorts: int | None = Field(default=None, ge=1, le=1 << 16)

    @property
    def most_candidates(self) -> int:
        return most_candidates(self.cohorts or DEFAULT_COHORTS, 1)

    def estimators_of(self, kind: Kind) -> tuple[EstimatorName, ...]:
        return ("auto", "empirical") if isinstance(kind, StringSets) else self.estimators

    def of_domain(self, kind: Kind) -> Self:
        """See ``MechanismFamily``; ValueError if the numbers of buckets or cohorts do not fit."""
        buckets = best_buckets(kind.held, self.epsilon) if self.buckets is None else self.buckets
        if not kind.held < buckets <= MOST_BUCKETS:
            raise ValueError(f"buckets: must be more than at_most, {kind.held}, and at most {MOST_BUCKETS:,}, or auto")
        if isinstance(kind, StringSets):
            if self.lasting_epsilon is not None:
                raise ValueError("lasting_epsilon: devices keep no responses to sets of strings; remove it")
            cohorts = self.cohorts or default_cohorts({"buckets": buckets})
            check_cells(cohorts, buckets, "cohorts: ")
            return self.model_copy(update={"buckets": buckets, "cohorts": cohorts})
        if self.cohorts is not None:
            raise ValueError("cohorts: a report about listed items has a hash function of its own; remove it")
        return self.model_copy(update={"buckets": buckets})

    def protocol(self, variable: Variable) -> LdpProtocol:
        if isinstance(variable.kind, StringSets):
            return self.sized(self._of_strings(variable, variable.kind), variable)
        held, items = variable.of_kind(Sets).held, variable.size

        def build(epsilon: float) -> SetHashing:
            return SetHashing(items + held, epsilon, held, self.buckets)

        protocol = of_sets(variable, self, build, SetEncoding(items, held), partial(SetDecoder, items=items))
        return self.sized(protocol, variable)

    def _of_strings(self, variable: Variable, kind: StringSets) -> LdpProtocol:
        assert self.buckets is not None
        assert self.cohorts is not None
        if kind.strings.spelled:
            raise ValueError(
                "domain.set.of.strings: set-olh spells no strings; remove alphabet and pieces, or use prefixes"
            )
        mechanism = CohortSetHashing(self.epsilon, kind.held, self.buckets, self.cohorts)
        longest = kind.strings.longest
        decoder = CandidateDecoder(mechanism, variable.candidates, longest, simultaneous=variable.simultaneous)
        return LdpProtocol(StringSetEncoding(StringEncoding(longest), kind.held), mechanism, decoder)
