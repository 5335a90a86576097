"""The mechanisms that protect only sensitive values, as models of specs."""

from typing import Literal

from pydantic import Field

from uldp.schemas.mechanism_family import PrivateSpec
from uldp.schemas.mechanism_names import OF_SYMBOLS


class MangatSpec(PrivateSpec):
    """Mangat's randomized response for two values, one of them sensitive."""

    utility_optimized = True
    estimators = OF_SYMBOLS

    name: Literal["mangat"]


class UtilityOptimizedResponseSpec(PrivateSpec):
    """Utility-optimized randomized response."""

    utility_optimized = True
    takes_tags = True
    estimators = OF_SYMBOLS

    name: Literal["urr"]


class UrapSpec(PrivateSpec):
    """Utility-optimized RAPPOR; ``theta`` is by default that of sue."""

    utility_optimized = True
    takes_tags = True

    name: Literal["urap"]
    theta: float | None = Field(default=None, gt=0, lt=1)


class UoueSpec(PrivateSpec):
    """Utility-optimized optimized unary encoding."""

    utility_optimized = True
    takes_tags = True

    name: Literal["uoue"]
