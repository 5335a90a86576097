"""The mechanisms that protect all values, as models of specs."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from uldp.schemas.specs.epsilon import Epsilon, protects
from uldp.schemas.specs.groups import Group
from uldp.schemas.specs.mechanism_family import (
    MOST_BUCKETS,
    NEEDS_EPSILON,
    MechanismFamily,
    PrivateSpec,
    Theta,
    best_buckets,
)
from uldp.schemas.specs.mechanism_names import OF_SYMBOLS

#: The most designs of bit-flip.
MAX_DESIGNS = 1024


#: The least epsilon of she. Below it, entries of a report could exceed two bytes.
MIN_SUMMATION_EPSILON = 0.0025


class IdentitySpec(MechanismFamily):
    """No obfuscation and no privacy, for tests."""

    estimators = OF_SYMBOLS
    epsilon: ClassVar[None] = None
    share: ClassVar[None] = None
    refuses: ClassVar = {
        "epsilon": "identity gives no privacy and takes no epsilon; remove epsilon or choose a mechanism"
    }

    name: Literal["identity"]


class RandomizedResponseSpec(PrivateSpec):
    """Randomized response; warner is its form for two values."""

    estimators = OF_SYMBOLS

    name: Literal["rr", "warner"]


class RapporSpec(PrivateSpec):
    """Basic RAPPOR: unary encoding in which the true bit is set with probability ``theta``."""

    needs: ClassVar = {"theta": "for example theta: 0.5 (sue and oue set theta themselves)", **NEEDS_EPSILON}

    name: Literal["rappor"]
    theta: Theta


class UnaryEncodingSpec(PrivateSpec):
    """Symmetric and optimized unary encoding."""

    name: Literal["sue", "oue"]


class SubsetSelectionSpec(PrivateSpec):
    """Subset selection: the report is a set of values, of the size that is best for epsilon."""

    name: Literal["ss"]


class LocalHashingSpec(PrivateSpec):
    """Optimized local hashing: randomized response on a hash of the value into ``buckets``."""

    largest_size = 10_000
    large_domains = ("hashes each value for each report", "linear-olh or pgr")

    name: Literal["olh"]
    buckets: int = Field(default_factory=best_buckets, ge=2, le=MOST_BUCKETS)


class HadamardResponseSpec(PrivateSpec):
    """Hadamard randomized response, which is also binary local hashing with linear functions."""

    largest_size = 1 << 23
    large_domains = ("has two cells or more for each value", "oue")

    name: Literal["hrr", "blh"]


class LinearHashingSpec(PrivateSpec):
    """Mechanisms of a finite geometry: local hashing with linear functions, and projective geometry response."""

    largest_size = 1 << 20
    large_domains = ("decodes by a transform of at most 2^23 numbers", "hrr")

    name: Literal["linear-olh", "pgr"]


def _between(theta: float) -> float:
    # Wang et al. (USENIX Security 2017), section 4.2: the variance is least inside of (1/2, 1).
    if not 0.5 < theta < 1:
        raise ValueError("must be more than 0.5 and less than 1, such as 0.75: the best threshold is always between")
    return theta


class ThresholdingSpec(PrivateSpec):
    """Thresholding with histogram encoding; ``theta`` is by default the best one, for each epsilon."""

    largest_size = 100_000
    large_domains = ("sends a bit for each value", "linear-olh, pgr or hrr")

    name: Literal["the"]
    theta: Annotated[float, AfterValidator(_between)] | None = None


def _fits_two_bytes(epsilon: float) -> float:
    if not epsilon >= MIN_SUMMATION_EPSILON:
        raise ValueError(f"must be {MIN_SUMMATION_EPSILON} or more: with less, noise exceeds two bytes; choose sue")
    return epsilon


class SummationSpec(PrivateSpec):
    """Summation with histogram encoding."""

    estimators = ("auto", "empirical", "norm-sub")
    largest_size = 100_000
    large_domains = ("sends two bytes for each value", "linear-olh, pgr or hrr")

    name: Literal["she"]
    epsilon: Annotated[float, AfterValidator(_fits_two_bytes), AfterValidator(protects)]


class BitFlipSpec(PrivateSpec):
    """A few bits of a unary encoding, those of one design.

    Attributes:
        bits: The number of values of a design, which is that of the bits of a report.
    """

    estimators = ("auto", "empirical")
    needs: ClassVar = {"bits": "the number of bits of a report, for example bits: 16", **NEEDS_EPSILON}

    name: Literal["bit-flip"]
    bits: int = Field(ge=1)


class InputDiscriminativeSpec(MechanismFamily):
    """Input-discriminative unary encoding: each group of values has an epsilon of its own.

    Attributes:
        groups: The groups, which divide the values.
    """

    share: ClassVar[None] = None
    refuses: ClassVar = {
        "epsilon": "idue has an epsilon for each of its groups; move epsilon there",
        "lasting_epsilon": (
            "a device keeps no response of idue, because each group would need a lasting epsilon of its own; remove"
            " lasting_epsilon, or choose oue, with the smallest epsilon"
        ),
    }

    name: Literal["idue"]
    groups: list[Group] = Field(min_length=2)

    @property
    def epsilon(self) -> float:
        """The largest budget of a group, in nats."""
        return max(group.epsilon for group in self.groups)


class MetricSpec(MechanismFamily):
    """The exponential mechanism for a distance: near values are protected from each other.

    Attributes:
        epsilon: The budget for each unit of distance, in nats.
        columns: The columns of the grid whose cells are the values, row by row; None if the values are in a line.
    """

    estimators = ("auto", "empirical", "em")
    largest_size = 4096
    large_domains = ("has a probability for each pair of values", "oue")
    share: ClassVar[None] = None
    needs = NEEDS_EPSILON
    refuses: ClassVar = {
        "lasting_epsilon": (
            "a device keeps no response of metric, because the noise on it would need a table of its own for each pair"
            " of values; remove lasting_epsilon, or choose rr"
        )
    }

    name: Literal["metric"]
    epsilon: Epsilon
    columns: int | None = Field(default=None, ge=2, le=4096)
