"""Mechanisms for sets in specs, of items or of strings that nobody lists; some users may report sizes of sets."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, Literal, Self

from pydantic import Field

from uldp.mechanisms.assembly import of_sets
from uldp.mechanisms.decoders.pair_decoder import PairDecoder
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.decoders.set_decoder import SetDecoder
from uldp.mechanisms.decoders.strata_decoder import PartsDecoder
from uldp.mechanisms.encodings.set_encoding import PairEncoding, SetEncoding, SizeEncoding, SizeRanges
from uldp.mechanisms.encodings.strata_encoding import StrataEncoding, StratumSource
from uldp.mechanisms.encodings.string_encodings import StringSetEncoding
from uldp.mechanisms.families.auto import BlockSize
from uldp.mechanisms.families.least_variance import symbols_part
from uldp.mechanisms.families.local_hashing.cohorts import CohortSetHashing
from uldp.mechanisms.families.sets.randomizer import SetHashing, SetSelection, best_buckets, best_chosen
from uldp.mechanisms.kernels.hashing import MOST_BUCKETS
from uldp.mechanisms.kernels.intervals import lower_tail
from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.protocol.decoder import Decoder, Part, require_reports, two_digits
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.randomizers.strata import Strata, strata_of
from uldp.mechanisms.strings.candidate_decoder import CandidateDecoder
from uldp.mechanisms.strings.cohort_sizes import DEFAULT_COHORTS, check_cells, default_cohorts, most_candidates
from uldp.mechanisms.strings.cohorts import StringEncoding
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.specs.estimators import EstimatorName
from uldp.schemas.specs.kinds import Kind, Pairs, Sets, StringSets
from uldp.schemas.specs.mechanism_family import PrivateSpec
from uldp.schemas.specs.variable import Variable
from uldp.schemas.table import Table, TableName

#: A window is flagged if more than this part of the users hold more items than a device reports.
MOST_CUT = 0.1


class SizedDecoder(PartsDecoder[Decoder]):
    """Reads counts of items, or of keys, by their own decoder, and those of sizes beside them.

    The tables are those of the items, and ``size``: the share of users whose set has a size of each range.
    """

    def __init__(self, items: Decoder, sizes: PureDecoder, ranges: SizeRanges, strata: Strata) -> None:
        super().__init__(("items", "sizes"), (items, sizes), strata)
        self._items, self._sizes, self._ranges = items, sizes, ranges
        self.estimators = items.estimators

    @property
    def without_sizes(self) -> Decoder:
        return self._items

    def reports(self, cells: Counts, n: int) -> tuple[int, ...]:
        return tuple(part.n for part in self.parts(cells, n))

    def variables(self, cells: Counts, n: int, names: Sequence[str]) -> Iterator[Part]:
        items, _ = self.parts(cells, n)
        if items.n:
            yield items._replace(name="")

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        items, _ = self.parts(cells, n)
        return self._items.linear(items.cells, items.n, repeats)

    def part_of(self, table: Table) -> int:
        return int(table.name is TableName.SIZE)

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Return those of the parts, and that of more than ``MOST_CUT`` of sets that are cut.

        The number of reports of large sizes is binomial: randomized response says each such size with q if a set is
        small, and also the true one with p - q if it is large.
        """
        found = dict(super().p_values(cells, n))
        _, sizes = self.parts(cells, n)
        if sizes.n:
            found[Flag.SETS_CUT] = lower_tail(
                int(sizes.cells[: self._ranges.first_cut].sum()), sizes.n, 1 - self._cut_reported
            )
        return found

    @property
    def _cut_reported(self) -> float:
        """The probability of a report of a large size, if ``MOST_CUT`` of the sets are cut."""
        q, gain = float(self._sizes.channel.q[0]), float(self._sizes.channel.gain[0])
        return q * (self._ranges.count - self._ranges.first_cut) + gain * MOST_CUT

    def forecast(self, n: int) -> Floats:
        (_, of_items), _ = self.expected(n)
        return self._items.forecast(of_items)

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        require_reports(n)
        self.require(estimator)
        items, sizes = self.parts(cells, n)
        found = self._items.tables(items.cells, items.n, estimator, repeats) if items.n else ()
        if not sizes.n:
            return found
        (share,) = self._sizes.tables(sizes.cells, sizes.n, self._sizes.known(estimator), repeats)
        return *found, replace(share, name=TableName.SIZE, keys=self._ranges.names)

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        (_, items), (_, sizes) = self.expected(n)
        yield "sizes", f"{self.shares[1]:.3g} of the reports are of sizes: {', '.join(self._ranges.names)}"
        yield from self._items.describe(items, estimator)
        yield "errors", f"of the share of a size at n = {sizes:,}: {float(self._sizes.forecast(sizes).max()):.3g}"

    def warnings(self, n: int, users: int, estimator: str) -> Iterator[str]:
        (_, items), (_, sizes) = self.expected(n)
        yield from self._items.warnings(items, users, estimator)
        m = self._cut_reported
        error = (m * (1 - m) / sizes) ** 0.5 / float(self._sizes.channel.gain[0])
        if 2 * error > MOST_CUT:
            need = two_digits(users * (2 * error / MOST_CUT) ** 2)
            yield (
                f"the standard error of the share of users with more than {self._ranges.held:,} items is {error:.2g}:"
                f" take {need:,} users or more in a window, a larger sizes, or leave sizes out"
            )


class SizedSetsSpec(PrivateSpec):
    """A mechanism for sets.

    Attributes:
        sizes: The share of the users who report the size of their set in place of its items; None for none.
    """

    not_ranked = "for sets"
    domain_kind = "set"

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
    """Return the narrowest ranges of sizes for which randomized response is best; see ``of_symbols``."""
    most = max(math.ceil(3 * math.exp(epsilon) + 2) - 1, 2)
    width = 1
    while SizeRanges(held, width).count > most:
        width += 1
    return SizeRanges(held, width)


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
