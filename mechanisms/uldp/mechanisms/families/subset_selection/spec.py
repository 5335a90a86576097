"""Subset selection in specs."""

from typing import ClassVar, Literal, Self

from uldp.mechanisms.assembly import SharesSpec
from uldp.mechanisms.families.auto import BlockSize
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection, best_chosen
from uldp.mechanisms.kernels.designs import best_subset
from uldp.schemas.arrays import Mask


class SubsetSelectionSpec(SharesSpec):
    """Subset selection: the report is a set of values, of the size that is best for epsilon."""

    title = "subset selection (SS)"
    literature: ClassVar = {"ss": "k-subset ω-SM"}
    like_with_tags = "uss"

    name: Literal["ss"]

    def build(self, sensitive: Mask, epsilon: float) -> SubsetSelection:
        return SubsetSelection(len(sensitive), epsilon, best_chosen(len(sensitive), self.epsilon))


class UtilityOptimizedSubsetSpec(SharesSpec):
    """Utility-optimized subset selection: a report is a set of ``w`` sensitive values, or a value that is not."""

    title = "utility-optimized subset selection (uSS)"
    utility_optimized = True
    takes_tags = True

    name: Literal["uss"]
    w: BlockSize = None

    def resolved(self, sensitive: int, size: int) -> Self:
        """See ``MechanismFamily``; ValueError if no set of the sensitive symbols has ``w`` members."""
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
