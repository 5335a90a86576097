"""One pair of a ranking in specs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal

from uldp.mechanisms.encodings.strata_encoding import StrataEncoding, StratumSource
from uldp.mechanisms.families.least_variance import symbols_part
from uldp.mechanisms.families.paired_comparison.decoder import RankingDecoder
from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.mechanisms.randomizers.strata import strata_of
from uldp.schemas.arrays import Values
from uldp.schemas.specs.kinds import Ranking
from uldp.schemas.specs.mechanism_family import PrivateSpec
from uldp.schemas.specs.variable import Variable


@dataclass(frozen=True)
class PairEncoding(Encoding):
    """The symbol is 0 if the first candidate of a pair stands above the second, else 1."""

    first: int
    second: int

    def device_form(self) -> DeviceForm:
        return {"form": "pair", "first": self.first, "second": self.second}

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Values:
        """Return the symbols, shape (n,), of the places of all candidates, shape (n, candidates)."""
        (places, _) = columns[0]
        symbols: Values = (places[:, self.second] < places[:, self.first]).astype("int64")
        return symbols


class PairsSpec(PrivateSpec):
    """A device draws one pair of candidates, and says by Warner's randomized response which it ranks higher."""

    title = "Warner’s randomized response about one drawn pair of candidates"
    literature: ClassVar = {"pairs": "voting Borda"}
    not_ranked = "for rankings"
    domain_kind = "ranking"
    estimators = ("auto", "empirical")

    name: Literal["pairs"]

    def protocol(self, variable: Variable) -> LdpProtocol:
        candidates = variable.of_kind(Ranking).of
        mechanism, of_pair = symbols_part(variable, self, 2, "rr")
        pairs = list(combinations(range(len(candidates)), 2))
        strata = strata_of([mechanism] * len(pairs), noun="pair")
        encoding = StrataEncoding([StratumSource(PairEncoding(*each), (0,)) for each in pairs], strata)
        decoder = RankingDecoder(candidates, of_pair, strata)
        return LdpProtocol(encoding, strata, decoder)
