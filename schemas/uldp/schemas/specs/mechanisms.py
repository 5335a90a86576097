"""The mechanisms that a spec can name: those of values, numbers and strings, of levels, and of records."""

import math
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from uldp.schemas.specs.domains import AttributeName
from uldp.schemas.specs.levels import Level, LevelName, check_levels
from uldp.schemas.specs.mechanism_family import MechanismFamily, PrivateSpec
from uldp.schemas.specs.mechanism_names import MECHANISM_TITLES
from uldp.schemas.specs.mistakes import quote
from uldp.schemas.specs.other_domains import BlockSpec, BloomSpec, CohortHashingSpec, DuchiSpec
from uldp.schemas.specs.utility_optimized import (
    BlockDesignSpec,
    MangatSpec,
    UrapSpec,
    UtilityOptimizedResponseSpec,
    UtilityOptimizedSpec,
    UtilityOptimizedSubsetSpec,
)
from uldp.schemas.specs.value_mechanisms import (
    BitFlipSpec,
    HadamardResponseSpec,
    IdentitySpec,
    InputDiscriminativeSpec,
    LinearHashingSpec,
    LocalHashingSpec,
    MetricSpec,
    RandomizedResponseSpec,
    RapporSpec,
    SubsetSelectionSpec,
    SummationSpec,
    ThresholdingSpec,
    UnaryEncodingSpec,
)

#: A mechanism for values that takes an epsilon for each level.
OfLevels = (
    RandomizedResponseSpec
    | MangatSpec
    | UtilityOptimizedResponseSpec
    | RapporSpec
    | UnaryEncodingSpec
    | UrapSpec
    | UtilityOptimizedSpec
    | UtilityOptimizedSubsetSpec
    | BlockDesignSpec
    | SubsetSelectionSpec
    | LocalHashingSpec
    | HadamardResponseSpec
    | LinearHashingSpec
    | ThresholdingSpec
)

#: Mechanisms for values that levels do not take, each with the reason and what to do.
NOT_OF_LEVELS = {
    "she": "no count of its reports supports a value, and levels pool such counts; choose sue, which has less noise",
    "bit-flip": "levels pool counts of all their reports, and a value has those of its design alone; choose sue",
    "idue": "its groups have their own epsilons; choose oue",
    "metric": "its epsilon is for a unit of distance; choose rr",
    "identity": "it gives no privacy at any level; choose rr",
}

#: A mechanism for an attribute of a record.
PartSpec = OfLevels | SummationSpec | DuchiSpec | BlockSpec | BitFlipSpec | BloomSpec | CohortHashingSpec


class LevelsSpec(MechanismFamily):
    """Levels of privacy that users choose from: the same mechanism, each with an epsilon of its own.

    Attributes:
        levels: The levels, by name.
        of: The mechanism, with the largest epsilon; ``at`` has that of a level.
    """

    estimators = ("auto", "empirical")
    share: ClassVar[None] = None
    refuses: ClassVar = {
        key: f"each of the levels has its own {key}; move {key} there" for key in ("epsilon", "lasting_epsilon")
    }

    name: Literal["levels"]
    levels: dict[LevelName, Level]
    of: Annotated[OfLevels, Field(discriminator="name")]

    @field_validator("levels")
    @classmethod
    def _fit(cls, levels: dict[str, Level]) -> dict[str, Level]:
        check_levels(levels)
        return levels

    @field_validator("of", mode="before")
    @classmethod
    def _with_budget(cls, of: object, info: ValidationInfo) -> object:
        if not isinstance(of, dict):
            return of
        name = of.get("name")
        if isinstance(name, str) and name in NOT_OF_LEVELS:
            raise ValueError(f"levels do not take {name}: {NOT_OF_LEVELS[name]}")
        # If the levels are wrong, they are missing here, and the error about them is enough.
        most = max((level.epsilon for level in info.data.get("levels", {}).values()), default=1.0)
        for key in ("epsilon", "lasting_epsilon", "share"):
            if of.get(key, most) != most:
                raise ValueError(f"each of the levels has its own {key}; move {key} there")
        return {**of, "epsilon": most}

    @property
    def epsilon(self) -> float:
        """The largest budget of one report, in nats."""
        return max(level.epsilon for level in self.levels.values())

    @property
    def lasting_epsilon(self) -> float | None:
        """The largest budget of all reports of one value; None if devices keep no response."""
        return max((level.lasting_epsilon for level in self.levels.values() if level.lasting_epsilon), default=None)

    def at(self, level: Level) -> OfLevels:
        """Return the mechanism of a level, with the parameters that are best for its epsilon."""
        budgets = {"epsilon": level.epsilon, "lasting_epsilon": level.lasting_epsilon}
        return type(self.of).model_validate(self.of.model_dump(exclude_unset=True) | budgets)

    def resolved(self, sensitive: int, size: int) -> Self:
        """Return this mechanism; ``at`` has the parameters of a level.

        Raises:
            ValueError: if a parameter does not fit at some level.
        """
        for level in self.levels.values():
            try:
                self.at(level).resolved(sensitive, size)
            except ValueError as error:
                raise ValueError(f"of.{error}") from error
        return self

    def share_of(self, level: Level) -> float:
        """Return the expected share of users at a level; equal shares are the default."""
        return 1 / len(self.levels) if level.share is None else level.share


#: A mechanism for values or for a number.
VariableMechanism = IdentitySpec | PartSpec | InputDiscriminativeSpec | MetricSpec | LevelsSpec


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


def not_a_name(data: object) -> object:
    """Refuse the name of a mechanism in place of the mapping that has this name.

    Raises:
        ValueError: if ``data`` is such a name.
    """
    if isinstance(data, str) and data in MECHANISM_TITLES:
        keys = f"name: {data}" if data == "identity" else f"name: {data}, epsilon: 1.0"
        raise ValueError(f"must be a mapping; write {{{keys}}}")
    return data


#: The mechanism of a collection.
MechanismSpec = VariableMechanism | SampleOneSpec
