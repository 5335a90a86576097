"""Unary encoding in specs: a bit for each value."""

import math
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator

from uldp.mechanisms.assembly import SharesSpec
from uldp.mechanisms.families.auto import AutoTheta
from uldp.mechanisms.families.unary_encoding.randomizer import (
    OUE_THETA,
    UnaryEncoding,
    best_threshold,
    sue_theta,
    thresholding,
)
from uldp.schemas.arrays import Mask
from uldp.schemas.specs.mechanism_family import PrivateSpec, Theta


class _Encoding(SharesSpec):
    def theta_at(self, epsilon: float) -> float:
        """Return the probability that the bit of the true value is set; by default that of OUE."""
        return OUE_THETA

    def build(self, sensitive: Mask, epsilon: float) -> UnaryEncoding:
        return UnaryEncoding(sensitive, epsilon, self.theta_at(epsilon))


class RapporSpec(_Encoding):
    """Basic RAPPOR: unary encoding in which the true bit is set with probability ``theta``."""

    title = "generalized RAPPOR"
    like_with_tags = "urap"
    not_ranked = "sue and oue have its best theta"
    needs: ClassVar = {"theta": "for example theta: 0.5 (sue and oue set theta themselves)", **PrivateSpec.needs}

    name: Literal["rappor"]
    theta: Theta

    @property
    def text(self) -> str:
        return f"{self.title}, θ = {self.theta:g}"

    def theta_at(self, epsilon: float) -> float:
        return self.theta


class SymmetricUnaryEncodingSpec(_Encoding):
    """Symmetric unary encoding."""

    title = "symmetric unary encoding (SUE)"
    literature: ClassVar = {"sue": "UE", "sue, or another mechanism, with lasting_epsilon": "PRR IRR"}
    like_with_tags = "urap"

    name: Literal["sue"]

    def theta_at(self, epsilon: float) -> float:
        return sue_theta(epsilon)


class OptimizedUnaryEncodingSpec(_Encoding):
    """Optimized unary encoding."""

    title = "optimized unary encoding (OUE)"
    like_with_tags = "uoue"

    name: Literal["oue"]


class _UtilityOptimized(_Encoding):
    utility_optimized = True
    takes_tags = True

    def uneven_noise(self, sensitive: Mask) -> str:
        return "" if sensitive.all() else "are not sensitive"


class UrapSpec(_UtilityOptimized):
    """Utility-optimized RAPPOR; ``theta`` is by default that of sue, and auto is the best one for the domain."""

    title = "utility-optimized RAPPOR (uRAP)"

    name: Literal["urap"]
    theta: AutoTheta = None

    @property
    def text(self) -> str:
        theta: object = self.theta  # the word auto, too
        return f"{self.title}, θ = {theta:g}" if isinstance(theta, float) else self.title

    def resolved(self, sensitive: int, size: int) -> Self:
        return self.model_copy(
            update={"theta": best_theta(self.epsilon, sensitive, size)} if isinstance(self.theta, str) else {}
        )

    def theta_at(self, epsilon: float) -> float:
        return sue_theta(epsilon) if self.theta is None else self.theta


class UoueSpec(_UtilityOptimized):
    """Utility-optimized optimized unary encoding."""

    title = "utility-optimized OUE (uOUE)"

    name: Literal["uoue"]


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


def best_theta(epsilon: float, sensitive: int, size: int) -> float:
    """Return the theta of uRAP with the least ``expected_l1``, of the multiples of 1/256 inside (0, 1)."""
    return min((step / 256 for step in range(1, 256)), key=lambda theta: expected_l1(epsilon, sensitive, size, theta))


def expected_l1(epsilon: float, sensitive: int, size: int, theta: float) -> float:
    """Return the l1 error of uRAP over k equal shares, equation (17), times sqrt(pi n / 2)."""
    odds = math.exp(epsilon)
    d1, p = theta / ((1 - theta) * odds + theta), theta * (1 - 1 / odds)
    m = d1 + (theta - d1) / size
    return sensitive * math.sqrt(m * (1 - m)) / (theta - d1) + (size - sensitive) * math.sqrt(
        (1 - p / size) / (p * size)
    )
