"""One pair of a ranking in specs."""

from functools import partial
from itertools import combinations
from typing import ClassVar, Literal

import numpy as np

from uldp.mechanisms.assembly import kept
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.encodings.strata_encoding import StrataEncoding, StratumSource
from uldp.mechanisms.families.paired_comparison.decoder import RankingDecoder
from uldp.mechanisms.families.paired_comparison.encoding import PairEncoding
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.randomizers.strata import MemoizedStrata, Strata
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.specs.kinds import Ranking
from uldp.schemas.specs.mechanism_family import PrivateSpec
from uldp.schemas.specs.variable import Variable


class PairsSpec(PrivateSpec):
    """A device draws one pair of candidates, and says by Warner's randomized response which it ranks higher."""

    title = "Warner’s randomized response about one drawn pair of candidates"
    literature: ClassVar = {"pairs": "voting Borda"}
    not_ranked = "for rankings"
    domain_kind = "ranking"
    estimators = ("auto", "empirical")

    name: Literal["pairs"]

    def protocol(self, variable: Variable) -> LdpProtocol:
        """See ``MechanismFamily``."""
        candidates = variable.of_kind(Ranking).of
        both = np.ones(2, dtype=np.bool_)
        once = RandomizedResponse(both, self.epsilon)
        pair = kept(self, once, partial(RandomizedResponse, both))
        pairs = list(combinations(range(len(candidates)), 2))
        strata = (Strata if self.lasting_epsilon is None else MemoizedStrata)(
            [pair] * len(pairs), [1 / len(pairs)] * len(pairs), "pair"
        )
        encoding = StrataEncoding([StratumSource(PairEncoding(*each), (0,)) for each in pairs], strata)
        of_pair = PureDecoder(once.channel, Pum(both, (), np.zeros((0, 2)), np.zeros(0)))
        return LdpProtocol(
            encoding, strata, RankingDecoder(candidates, of_pair, strata, simultaneous=variable.simultaneous)
        )
