"""Strings that nobody lists, and sets of them, found by their prefixes, in specs."""

from typing import ClassVar, Literal, Self

from pydantic import Field

from uldp.mechanisms.assembly import kept
from uldp.mechanisms.encodings.strata_encoding import StrataEncoding, StratumSource
from uldp.mechanisms.encodings.string_encodings import PrefixEncoding, StringSetEncoding
from uldp.mechanisms.families.local_hashing.cohorts import CohortHashing, CohortSetHashing
from uldp.mechanisms.families.local_hashing.spec import CohortsSpec
from uldp.mechanisms.families.prefixes.decoder import WalkDecoder
from uldp.mechanisms.families.sets.randomizer import best_buckets
from uldp.mechanisms.protocol.encoding import Encoding
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.randomizers.strata import strata_of
from uldp.mechanisms.strings.cohort_sizes import MOST_COHORT_CELLS, check_cells, default_cohorts
from uldp.mechanisms.strings.cohorts import StringEncoding
from uldp.mechanisms.strings.spelling import Spelling
from uldp.mechanisms.strings.string_mechanism import StringMechanism
from uldp.mechanisms.strings.walk import Walk
from uldp.schemas.specs.candidates import Discover
from uldp.schemas.specs.kinds import Kind, Strings, StringSets
from uldp.schemas.specs.variable import Variable

# A window scores at most so many prefixes of one length.
_MOST_SCORED = 1 << 17
# The pieces of a vocabulary have about so many characters.
_OF_A_PIECE = 3
_MOST_LENGTHS = 256
# A search hashes strings for cohorts, and SHA-256 their bytes, at most so often: for half a minute.
_MOST_WORK = 1 << 32
# The strings that are looked for are hashed for all cohorts into a table with at most so many entries.
_MOST_POSITIONS = 1 << 24


class PrefixesSpec(CohortsSpec):
    """Each device reports a prefix of its string, or the whole string, by optimized local hashing with cohorts.

    A device with a set of strings reports a prefix of each, or all whole strings, by hashing for sets.

    Attributes:
        buckets: The number of buckets of a hash function.
        cohorts: The number of cohorts.
        step: By how many pieces a prefix is longer than the next shorter one.
        depth: The number of lengths of prefixes. Strings of up to ``depth`` times ``step`` pieces are found.
    """

    title = "prefixes of strings by optimized local hashing with cohorts"
    literature: ClassVar = {"prefixes": "PEM TreeHist SFP CCE PrivTrie Bitstogram A-RAPPOR"}
    discovers = True
    also_for = (StringSets.name,)

    name: Literal["prefixes"]
    step: int = Field(default=1, ge=1, le=16)
    depth: int | None = Field(default=None, ge=1, le=_MOST_LENGTHS)

    def of_domain(self, kind: Kind) -> Self:
        if not isinstance(kind, StringSets):
            return self
        if self.lasting_epsilon is not None:
            raise ValueError("lasting_epsilon: devices keep no responses to sets of strings; remove it")
        buckets = self.buckets if "buckets" in self.model_fields_set else best_buckets(kind.held, self.epsilon)
        if buckets <= kind.held:
            raise ValueError(f"buckets: must be more than at_most, {kind.held}; write more, or leave it out")
        cohorts = self.cohorts if "cohorts" in self.model_fields_set else default_cohorts({"buckets": buckets})
        check_cells(cohorts, buckets, "cohorts: ")
        return self.model_copy(update={"buckets": buckets, "cohorts": cohorts})

    def protocol(self, variable: Variable) -> LdpProtocol:
        sets, discover = variable.kind if isinstance(variable.kind, StringSets) else None, variable.discover
        kind = variable.of_kind(Strings) if sets is None else sets.strings
        if not kind.pieces:
            where = "domain.strings" if sets is None else "domain.set.of.strings"
            raise ValueError(
                f"{where}: prefixes needs to know how strings are spelled; add alphabet, such as a-z0-9, or pieces_file"
            )
        spelling, depth = Spelling(kind.pieces), self._depth(kind)
        self._check_sizes(discover, len(spelling.pieces), depth, kind.longest)

        def build(epsilon: float) -> CohortHashing:
            return CohortHashing(epsilon, self.buckets, self.cohorts)

        once: StringMechanism = build(self.epsilon)
        if sets is not None:
            once = CohortSetHashing(self.epsilon, sets.held, self.buckets, self.cohorts)
        part = kept(self, once, build)
        strata = strata_of([part] * (depth + 1), noun="prefix")
        lengths = tuple(self.step * (number + 1) for number in range(depth))
        encodings = [PrefixEncoding(number, pieces, spelling, kind.longest) for number, pieces in enumerate(lengths)]
        of_each: list[Encoding] = [*encodings, StringEncoding(kind.longest)]
        if sets is not None:
            of_each = [StringSetEncoding(each, sets.held) for each in of_each]
        sources = [StratumSource(each, (0,)) for each in of_each]
        walk = Walk(spelling, kind.longest, once.cohort_channel, lengths, discover.keep, discover.most)
        decoder = WalkDecoder(strata, walk, variable.candidates, simultaneous=variable.simultaneous)
        return LdpProtocol(StrataEncoding(sources, strata), strata, decoder)

    def _depth(self, kind: Strings) -> int:
        """Return the number of lengths: by default, as many as the longest string may need."""
        if self.depth is not None:
            return self.depth
        alone = all(len(piece) == 1 for piece in kind.pieces or ())
        return min(-(-kind.longest // (self.step * (1 if alone else _OF_A_PIECE))), _MOST_LENGTHS)

    def _check_sizes(self, discover: Discover, pieces: int, depth: int, longest: int) -> None:
        """Raise ValueError if the search takes too long or needs too much memory, or there are too many cells."""
        keep, most = discover.keep, discover.most
        scored = keep * sum(pieces**number for number in range(self.step + 1))
        if scored > _MOST_SCORED:
            remedy = f"step: {self.step - 1}" if self.step > 1 else "fewer pieces"
            raise ValueError(
                f"mechanism.step: up to {self.step} of {pieces:,} pieces behind each of {keep:,} prefixes are"
                f" {scored:,} strings to score, and {_MOST_SCORED:,} is the most; write {remedy}, or a smaller"
                " discover.keep"
            )
        cells = (depth + 1) * self.cohorts * self.buckets
        if cells > MOST_COHORT_CELLS:
            fitting = MOST_COHORT_CELLS // ((depth + 1) * self.buckets)
            remedy = f"cohorts: {fitting}" if fitting else "a smaller depth"
            raise ValueError(
                f"mechanism.cohorts: {depth} lengths and whole strings, of {self.cohorts:,} cohorts with"
                f" {self.buckets:,} buckets, have {cells:,} cells, and {MOST_COHORT_CELLS:,} is the most; write"
                f" {remedy}"
            )
        if depth * scored * (self.cohorts + longest) > _MOST_WORK:
            raise ValueError(
                f"mechanism.cohorts: a search that scores {scored:,} strings at each of {depth:,} lengths by"
                f" {self.cohorts:,} cohorts takes minutes; write fewer cohorts or pieces, or a smaller depth, step or"
                " discover.keep"
            )
        if most * self.cohorts > _MOST_POSITIONS:
            raise ValueError(
                f"discover.most: {most:,} strings have {most * self.cohorts:,} positions in {self.cohorts:,} cohorts,"
                f" and {_MOST_POSITIONS:,} is the most; write {_MOST_POSITIONS // self.cohorts}"
            )
