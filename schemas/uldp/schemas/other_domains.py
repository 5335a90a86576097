"""The mechanisms for numbers, as models of specs."""

from typing import Literal

from pydantic import Field

from uldp.schemas.mechanism_family import MOST_BUCKETS, PrivateSpec

#: The estimator "ems" needs a number of bins up to this: its errors take a matrix of that many rows and columns.
MAX_EMS_BINS = 1024


class DuchiSpec(PrivateSpec):
    """Duchi et al.'s mechanism for the mean of a number, with reports of one bit."""

    domain_kind = "number"
    estimators = ("auto", "empirical")

    name: Literal["duchi"]


class BlockSpec(PrivateSpec):
    """The piecewise and the square wave mechanism on a grid: outputs near the true bin are more probable.

    Attributes:
        bins: The number of bins of the range.
        width: The width of the block of more probable outputs.
    """

    domain_kind = "number"
    estimators = ("auto", "empirical", "ems")

    name: Literal["block"]
    bins: int = Field(default=1024, ge=2, le=MOST_BUCKETS)
    width: Literal["auto", "piecewise", "square-wave"] = "auto"
