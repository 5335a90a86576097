"""The mechanisms over block designs in specs."""

from typing import Literal, Self

from uldp.mechanisms.assembly import SharesSpec
from uldp.mechanisms.families.auto import BlockSize
from uldp.mechanisms.families.block_designs.randomizer import BlockResponse
from uldp.mechanisms.kernels.block_designs import CyclicDesign, HadamardDesign
from uldp.mechanisms.kernels.designs import MOST_POINTS, best_design, design_of
from uldp.schemas.arrays import Mask
from uldp.schemas.specs.mistakes import prefixed


class UtilityOptimizedHadamardSpec(SharesSpec):
    """Utility-optimized Hadamard response."""

    title = "utility-optimized Hadamard response (uHR)"
    utility_optimized = True
    takes_tags = True

    name: Literal["uhr"]

    def build(self, sensitive: Mask, epsilon: float) -> BlockResponse:
        return BlockResponse(sensitive, epsilon, HadamardDesign(int(sensitive.sum())))


class BlockDesignSpec(SharesSpec):
    """Utility-optimized block designs: a report is a block of ``w`` sensitive values, or a value that is not."""

    title = "utility-optimized block designs (uBD)"
    utility_optimized = True
    takes_tags = True
    largest_size = MOST_POINTS // 2

    name: Literal["ubd"]
    w: BlockSize = None

    def resolved(self, sensitive: int, size: int) -> Self:
        """See ``MechanismFamily``; ValueError if no design has blocks of ``w`` points."""
        if self.w is None:
            return self.model_copy(update={"w": best_design(self.epsilon, sensitive, size).block})
        with prefixed("w: "):
            design_of(self.w, sensitive, size)
        return self

    def build(self, sensitive: Mask, epsilon: float) -> BlockResponse:
        assert self.w is not None  # this mechanism is resolved
        design = design_of(self.w, int(sensitive.sum()), len(sensitive))
        return BlockResponse(sensitive, epsilon, CyclicDesign(design))
