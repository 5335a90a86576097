"""A tree of counts in specs: ranges and quantiles of ordered values and of numbers.

Source: Cormode, Kulkarni & Srivastava, "Answering Range Queries Under Local Differential Privacy" (VLDB 2019): each
device draws a level of the tree and reports its block there. Its levels of equal shares are not kept: shares that grow
with b^(l/3) have a third less error for short ranges, and about the same for long ones.

Guarantee: one report is epsilon-LDP, for the whole value. The level is drawn whatever the value is, and a report names
it openly.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from uldp.mechanisms.encodings.strata_encoding import StrataEncoding, StratumSource
from uldp.mechanisms.families.folds.spec import ProjectiveGeometrySpec
from uldp.mechanisms.families.least_variance import of_symbols, symbols_part
from uldp.mechanisms.families.tree.decoder import Bins, TreeDecoder
from uldp.mechanisms.families.tree.encoding import BinEncoding, BlockEncoding
from uldp.mechanisms.pooling.tree import Tree, blocks_of, widths_of
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.randomizers.strata import strata_of
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Mask
from uldp.schemas.specs.domains import Tag
from uldp.schemas.specs.kinds import Kind, ListedValues, Number
from uldp.schemas.specs.mechanism_family import MisfitError, PrivateSpec
from uldp.schemas.specs.values import Values
from uldp.schemas.specs.variable import Variable

#: The bins of a number, unless a spec says otherwise.
DEFAULT_BINS = 1024


class TreeSpec(PrivateSpec):
    """A tree over bins: a device reports its block of one level, which it draws.

    Attributes:
        branching: The number of blocks of the next level in a block.
        bins: The number of bins of the range of a number; the values of other domains are the bins.
    """

    title = "a tree of counts, for ranges and quantiles"
    literature: ClassVar[Mapping[str, str]] = {"tree": "HH HI HIO AHEAD hierarchical Haar HaarHRR"}
    not_ranked = "for ranges and quantiles"
    domain_kind = "number"
    also_for = (ListedValues.name,)
    estimators = ("auto", "empirical")
    largest_size = ProjectiveGeometrySpec.largest_size
    large_domains = ("has levels of projective geometry, which decode by a transform of at most 2^23 numbers", "")

    name: Literal["tree"]
    branching: int = Field(default=4, ge=2, le=1 << 10)
    bins: int | None = Field(default=None, ge=2, le=1 << 16)

    def fitted(self, values: Values, sensitive: Mask, tags: Sequence[Tag]) -> Self:
        if values.size and self.bins is not None:
            raise MisfitError("bins", "the values of the domain are the bins; remove bins")
        return self if values.size or self.bins else self.model_copy(update={"bins": DEFAULT_BINS})

    def bins_of(self, kind: Kind) -> int:
        return kind.values.size if kind.listed else self.bins or DEFAULT_BINS

    def protocol(self, variable: Variable) -> LdpProtocol:
        bins = self.bins_of(variable.kind)
        widths = widths_of(bins, self.branching)
        blocks = blocks_of(bins, widths).tolist()
        levels = [symbols_part(variable, self, size, of_symbols(size, self.epsilon)) for size in blocks]
        mechanisms, decoders = zip(*levels, strict=True)
        growth = np.cumprod([1.0, *[self.branching ** (1 / 3)] * (len(widths) - 1)])
        strata = strata_of(mechanisms, (growth / growth.sum()).tolist(), "level")
        encoding = _bins(variable, bins)
        sources = [StratumSource(BlockEncoding(encoding, width), (0,)) for width in widths]
        decoder = TreeDecoder(strata, decoders, Tree(bins, widths), Bins(variable.kind, bins), variable.ranges)
        return LdpProtocol(StrataEncoding(sources, strata), strata, decoder)


def _bins(variable: Variable, bins: int) -> BinEncoding | Pum:
    if variable.kind.listed:
        return Pum.of(variable)
    number = variable.of_kind(Number)
    return BinEncoding(number.low, number.high, bins)
