"""Thresholding with histogram encoding in specs."""

from typing import Annotated, Literal

from pydantic import AfterValidator

from uldp.mechanisms.assembly import SharesSpec
from uldp.mechanisms.families.thresholding.randomizer import best_threshold, thresholding
from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding
from uldp.schemas.arrays import Mask


def _between(theta: float) -> float:
    # Wang et al. (USENIX Security 2017), section 4.2: the variance is least inside of (1/2, 1).
    if not 0.5 < theta < 1:
        raise ValueError("must be more than 0.5 and less than 1, such as 0.75: the best threshold is always between")
    return theta


class ThresholdingSpec(SharesSpec):
    """Thresholding with histogram encoding; ``theta`` is by default the best one, for each epsilon."""

    title = "thresholding with histogram encoding (THE)"
    largest_size = 100_000
    large_domains = ("sends a bit for each value", "linear-olh, pgr or hrr")

    name: Literal["the"]
    theta: Annotated[float, AfterValidator(_between)] | None = None

    def build(self, sensitive: Mask, epsilon: float) -> UnaryEncoding:
        return thresholding(sensitive, epsilon, self.theta or best_threshold(epsilon))
