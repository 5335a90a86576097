"""The mechanisms that a spec can name, with their parameters and capabilities: a model for each family."""

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from uldp.schemas.domains import AttributeName, DomainKind
from uldp.schemas.mistakes import quote
from uldp.schemas.strict import Strict

MechanismName = Literal[
    "identity",
    "rr",
    "warner",
    "mangat",
    "urr",
    "rappor",
    "sue",
    "oue",
    "urap",
    "uoue",
    "ss",
    "olh",
    "duchi",
    "block",
    "sample-one",
]
EstimatorName = Literal["auto", "empirical", "threshold", "norm-sub", "wls", "mle", "em", "ems"]

#: What each mechanism is called on a page.
MECHANISM_TITLES: Mapping[MechanismName, str] = {
    "identity": "identity, no obfuscation",
    "rr": "randomized response (RR)",
    "warner": "Warner’s randomized response",
    "mangat": "Mangat’s randomized response",
    "urr": "utility-optimized randomized response (uRR)",
    "rappor": "generalized RAPPOR",
    "sue": "symmetric unary encoding (SUE)",
    "oue": "optimized unary encoding (OUE)",
    "urap": "utility-optimized RAPPOR (uRAP)",
    "uoue": "utility-optimized OUE (uOUE)",
    "ss": "subset selection (SS)",
    "olh": "optimized local hashing (OLH)",
    "duchi": "Duchi et al.’s mechanism for a mean",
    "block": "the piecewise and square wave mechanism",
    "sample-one": "a mechanism for each attribute of the record",
}

#: The estimators for support counts, and those that also need each report to be in exactly one cell.
OF_COUNTS: tuple[EstimatorName, ...] = ("auto", "empirical", "threshold", "norm-sub", "wls")
OF_SYMBOLS: tuple[EstimatorName, ...] = (*OF_COUNTS, "mle", "em")

#: The most buckets of a hash, and the most bins of a number.
_MOST_CELLS = 1 << 16

#: The estimator "ems" needs a number of bins up to this: its errors take a matrix of that many rows and columns.
MAX_EMS_BINS = 1024
#: The least epsilon of block. Below it, a report says almost nothing, and floats cannot represent widths.
MIN_BLOCK_EPSILON = 1e-6
#: The largest epsilon of a report, and of all reports of a value.
MAX_EPSILON = 20.0


def _protects(epsilon: float) -> float:
    if not epsilon <= MAX_EPSILON:
        raise ValueError(
            f"must be {MAX_EPSILON:g} or less: with more, a reader can take each report for the truth, and above 30 the"
            " noise is finer than the draws of a device; choose identity for reports without privacy"
        )
    return epsilon


#: A privacy budget in nats, of one report or of all reports of a value.
Epsilon = Annotated[float, Field(gt=0), AfterValidator(_protects)]


class _MechanismSpec(Strict):
    """A mechanism.

    Attributes:
        utility_optimized: Whether it protects only sensitive values, so that a spec may list these.
        takes_tags: Whether it can be the common mechanism of PUM.
        domain_kind: The kind of domain that it is for.
        estimators: The estimators for its statistic; the first is the default.
        largest_size: The most values that its domain may have.
        name: Its name in specs.
    """

    utility_optimized: ClassVar[bool] = False
    takes_tags: ClassVar[bool] = False
    domain_kind: ClassVar[DomainKind] = "values"
    estimators: ClassVar[tuple[EstimatorName, ...]] = OF_COUNTS
    largest_size: ClassVar[int] = 1 << 24

    name: str

    @model_validator(mode="before")
    @classmethod
    def _takes_its_parameters(cls, data: Any) -> Any:
        for key in data if isinstance(data, dict) else ():
            takers = _takers(key)
            if takers and key not in cls.model_fields:
                raise ValueError(f"{data['name']} takes no {key}; only {takers} {'do' if ',' in takers else 'does'}")
        return data


class IdentitySpec(_MechanismSpec):
    """No obfuscation and no privacy, for tests."""

    estimators = OF_SYMBOLS
    epsilon: ClassVar[None] = None
    share: ClassVar[None] = None

    name: Literal["identity"]

    @model_validator(mode="before")
    @classmethod
    def _has_no_budget(cls, data: Any) -> Any:
        if isinstance(data, dict) and "epsilon" in data:
            raise ValueError("identity gives no privacy and takes no epsilon; remove epsilon or choose a mechanism")
        return data


class PrivateSpec(_MechanismSpec):
    """A mechanism with privacy.

    Attributes:
        epsilon: The privacy budget of one report, in nats.
        share: In a record, the share of the reports about this attribute.
        lasting_epsilon: The privacy budget of all reports of one value together, in nats; None if devices keep no
            response, and each report spends ``epsilon`` anew.
    """

    name: str
    epsilon: Epsilon
    share: float | None = Field(default=None, gt=0, le=1)
    lasting_epsilon: Epsilon | None = None

    @model_validator(mode="before")
    @classmethod
    def _has_a_budget(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("epsilon") is None:
            raise ValueError(f"{data['name']} needs epsilon, for example epsilon: 1.0")
        return data

    @field_validator("lasting_epsilon")
    @classmethod
    def _covers_one_report(cls, lasting: float | None, info: ValidationInfo) -> float | None:
        # If epsilon is wrong, it is missing here, and the error about it is enough.
        epsilon = info.data.get("epsilon", 0.0)
        if lasting is not None and lasting < epsilon:
            raise ValueError(f"must be at least epsilon, the budget of one of these reports ({epsilon:g})")
        return lasting


class RandomizedResponseSpec(PrivateSpec):
    """Randomized response; warner is its form for two values."""

    estimators = OF_SYMBOLS

    name: Literal["rr", "warner"]


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


class RapporSpec(PrivateSpec):
    """Basic RAPPOR: unary encoding in which the true bit is set with probability ``theta``."""

    name: Literal["rappor"]
    theta: float = Field(gt=0, lt=1)

    @model_validator(mode="before")
    @classmethod
    def _has_theta(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("theta") is None:
            raise ValueError("rappor needs theta, for example theta: 0.5 (sue and oue set theta themselves)")
        return data


class UnaryEncodingSpec(PrivateSpec):
    """Symmetric and optimized unary encoding."""

    name: Literal["sue", "oue"]


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


class SubsetSelectionSpec(PrivateSpec):
    """Subset selection: the report is a set of values, of the size that is best for epsilon."""

    name: Literal["ss"]


def _best_buckets(data: dict[str, Any]) -> int:
    """Return the number of buckets with the least variance (Wang et al., USENIX Security 2017, section 4.4)."""
    # Older versions of pydantic ask even if epsilon is wrong and missing here; the error about it is enough.
    return min(round(math.exp(data.get("epsilon", 1.0))) + 1, _MOST_CELLS)


class LocalHashingSpec(PrivateSpec):
    """Optimized local hashing: randomized response on a hash of the value into ``buckets``."""

    largest_size = 10_000

    name: Literal["olh"]
    buckets: int = Field(default_factory=_best_buckets, ge=2, le=_MOST_CELLS)


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
    epsilon: Annotated[float, Field(ge=MIN_BLOCK_EPSILON), AfterValidator(_protects)]
    bins: int = Field(default=1024, ge=2, le=_MOST_CELLS)
    width: Literal["auto", "piecewise", "square-wave"] = "auto"


#: A mechanism for an attribute of a record.
PartSpec = (
    RandomizedResponseSpec
    | MangatSpec
    | UtilityOptimizedResponseSpec
    | RapporSpec
    | UnaryEncodingSpec
    | UrapSpec
    | UoueSpec
    | SubsetSelectionSpec
    | LocalHashingSpec
    | DuchiSpec
    | BlockSpec
)
#: A mechanism for values or for a number.
VariableMechanism = IdentitySpec | PartSpec


class SampleOneSpec(PrivateSpec):
    """The mechanism of a record: a device draws one attribute and reports it with the mechanism of this attribute.

    Attributes:
        of: The mechanism of each attribute. All have the budgets of the record, because a device reports one of them:
            with ``lasting_epsilon``, always the same one.
    """

    domain_kind = "record"
    estimators = ("auto", "empirical")

    name: Literal["sample-one"]
    of: dict[AttributeName, Annotated[PartSpec, Field(discriminator="name")]]

    @field_validator("of", mode="before")
    @classmethod
    def _with_budget(cls, of: object, info: ValidationInfo) -> object:
        if not isinstance(of, dict):
            return of
        # If epsilon is wrong, it is missing here, and the error about it is enough.
        epsilon, lasting = info.data.get("epsilon", 1.0), info.data.get("lasting_epsilon")
        parts = {}
        for attribute, part in of.items():
            if isinstance(part, dict):
                if part.get("epsilon", epsilon) != epsilon:
                    raise ValueError(f"{quote(attribute)} has the epsilon of sample-one; remove its own epsilon")
                if part.get("lasting_epsilon", lasting) != lasting:
                    raise ValueError(f"{quote(attribute)} has the lasting_epsilon of sample-one; move its own there")
                part = {**part, "epsilon": epsilon, "lasting_epsilon": lasting}
            parts[attribute] = part
        return parts

    @model_validator(mode="after")
    def _shares_are_a_whole(self) -> "SampleOneSpec":
        shares = [part.share for part in self.of.values()]
        given = [share for share in shares if share is not None]
        if given and len(given) < len(shares):
            missing = next(attribute for attribute, part in self.of.items() if part.share is None)
            raise ValueError(f"{missing} has no share; give each attribute a share, or none for equal shares")
        if given and abs(math.fsum(given) - 1) > 1e-9:
            raise ValueError(f"the shares must sum to 1, got {math.fsum(given):.10g}")
        return self

    def share_of(self, attribute: str) -> float:
        """Return the share of the reports about an attribute; equal shares are the default."""
        share = self.of[attribute].share
        return 1 / len(self.of) if share is None else share


#: The mechanism of a collection.
MechanismSpec = VariableMechanism | SampleOneSpec


def _takers(parameter: str) -> str:
    return names_where(lambda family: parameter in family.model_fields)


def names_where(holds: Callable[[type[_MechanismSpec]], bool]) -> str:
    """Return the names of all families for which ``holds`` returns true, as text."""
    families = filter(holds, get_args(MechanismSpec))
    return ", ".join(name for family in families for name in get_args(family.model_fields["name"].annotation))
