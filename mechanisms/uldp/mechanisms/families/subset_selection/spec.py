"""Subset selection, and the mechanisms over block designs, in specs."""

from typing import ClassVar, Literal, Self

from uldp.mechanisms.assembly import SharesSpec
from uldp.mechanisms.families.auto import BlockSize
from uldp.mechanisms.families.subset_selection.randomizer import BlockResponse, SubsetSelection, best_chosen
from uldp.mechanisms.kernels.block_designs import CyclicDesign, HadamardDesign
from uldp.mechanisms.kernels.designs import MOST_POINTS, best_design, best_subset, design_of
from uldp.schemas.arrays import Mask
from uldp.schemas.specs.mistakes import prefixed


class SubsetSelectionSpec(SharesSpec):
    """Subset selection: the report is a set of values, of the size that is best for epsilon."""

    title = "subset selection (SS)"
    literature: ClassVar = {"ss": "k-subset ω-SM"}
    like_with_tags = "uss"

    name: Literal["ss"]

    def build(self, sensitive: Mask, epsilon: float) -> SubsetSelection:
        return SubsetSelection(len(sensitive), epsilon, best_chosen(len(sensitive), self.epsilon))


class _UtilityOptimized(SharesSpec):
    utility_optimized = True
    takes_tags = True


class UtilityOptimizedSubsetSpec(_UtilityOptimized):
    """Utility-optimized subset selection: a report is a set of ``w`` sensitive values, or a value that is not."""

    title = "utility-optimized subset selection (uSS)"

    name: Literal["uss"]
    w: BlockSize = None

    def resolved(self, sensitive: int, size: int) -> Self:
        if self.w is None:
            return self.model_copy(update={"w": best_subset(self.epsilon, sensitive, size)})
        most = max(sensitive - 1, 1)
        if self.w > most:
            raise ValueError(
                f"w: a set of {sensitive:,} sensitive symbols (values and tags) has 1 to {most:,} of them; write"
                f" {most}, or auto"
            )
        return self

    def build(self, sensitive: Mask, epsilon: float) -> SubsetSelection:
        assert self.w is not None  # this mechanism is resolved
        return SubsetSelection(len(sensitive), epsilon, self.w, sensitive=sensitive)


class UtilityOptimizedHadamardSpec(_UtilityOptimized):
    """Utility-optimized Hadamard response."""

    title = "utility-optimized Hadamard response (uHR)"

    name: Literal["uhr"]

    def build(self, sensitive: Mask, epsilon: float) -> BlockResponse:
        return BlockResponse(sensitive, epsilon, HadamardDesign(int(sensitive.sum())))


class BlockDesignSpec(_UtilityOptimized):
    """Utility-optimized block designs: a report is a block of ``w`` sensitive values, or a value that is not."""

    title = "utility-optimized block designs (uBD)"
    largest_size = MOST_POINTS // 2

    name: Literal["ubd"]
    w: BlockSize = None

    def resolved(self, sensitive: int, size: int) -> Self:
        if self.w is None:
            return self.model_copy(update={"w": best_design(self.epsilon, sensitive, size).block})
        with prefixed("w: "):
            design_of(self.w, sensitive, size)
        return self

    def build(self, sensitive: Mask, epsilon: float) -> BlockResponse:
        assert self.w is not None  # this mechanism is resolved
        design = design_of(self.w, int(sensitive.sum()), len(sensitive))
        return BlockResponse(sensitive, epsilon, CyclicDesign(design))
