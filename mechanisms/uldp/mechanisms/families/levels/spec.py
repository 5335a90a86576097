"""Levels of privacy in specs: each user chooses an epsilon, and the reports of all levels give one estimate.

Source: Chen, Li, Qin, Kasiviswanathan & Jin, "Private Spatial Data Aggregation in the Local Setting" (ICDE 2016), for
personalized local differential privacy (PLDP); equation (8) of the survey of Wang et al. (Sensors 20, 2020).

Guarantee: one report is LDP (or ULDP) with the epsilon of the level that its user has chosen. The report names the
level openly. So a user must choose it independently of the values: a device that chooses a stricter level for a
sensitive value tells, by the level, that the value is sensitive. A device therefore has a level, and not a report.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, ValidationInfo, field_serializer, field_validator

from uldp.mechanisms.catalog import build_variable
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.encodings.strata_encoding import AtLevel, StrataEncoding, StratumSource
from uldp.mechanisms.families.levels.decoder import LevelsDecoder
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.randomizers.strata import strata_of
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Mask
from uldp.schemas.specs.any_mechanism import LevelMechanism
from uldp.schemas.specs.budget import Epsilon, covers
from uldp.schemas.specs.domains import Tag
from uldp.schemas.specs.families import mechanism_names
from uldp.schemas.specs.mechanism_family import MechanismFamily, MisfitError, family
from uldp.schemas.specs.mistakes import prefixed
from uldp.schemas.specs.strict import Strict
from uldp.schemas.specs.values import Values
from uldp.schemas.specs.variable import Variable

LevelName = Annotated[
    str, Field(pattern=r"^[a-z0-9_-]{1,64}$", description="1 to 64 of the characters a-z, 0-9, _ and -")
]


class Level(Strict):
    """A level of privacy.

    Attributes:
        epsilon: The budget of one report, in nats.
        lasting_epsilon: The budget of all reports of one value together; None if devices keep no response.
        share: The share of users to expect at this level, for simulations and forecasts.
    """

    epsilon: Epsilon
    lasting_epsilon: float | None = None
    share: float | None = Field(default=None, gt=0, le=1)

    @field_validator("lasting_epsilon")
    @classmethod
    def _covers_one_report(cls, lasting: float | None, info: ValidationInfo) -> float | None:
        # If epsilon is wrong, it is missing here, and the error about it is enough.
        return None if lasting is None else covers(lasting, info.data.get("epsilon", 0.0))


class LevelsSpec(MechanismFamily):
    """Levels of privacy that users choose from: the same mechanism, each with an epsilon of its own.

    Attributes:
        levels: The levels, by name.
        of: The mechanism, with the largest epsilon; ``at`` has that of a level.
    """

    title = "a mechanism with levels of privacy to choose from"
    literature: ClassVar = {"levels": "PLDP PCE"}
    several_epsilons = True
    not_ranked = "an epsilon for each level of users"
    estimators = ("auto", "empirical")
    refuses: ClassVar = {
        key: f"each of the levels has its own {key}; move {key} there" for key in ("epsilon", "lasting_epsilon")
    }
    share: ClassVar[None] = None

    name: Literal["levels"]
    levels: dict[LevelName, Level]
    of: LevelMechanism

    @field_validator("levels")
    @classmethod
    def _fit(cls, levels: dict[str, Level]) -> dict[str, Level]:
        if len(levels) < 2:
            raise ValueError("give two levels or more; one level is the mechanism of itself")
        kept = [level.lasting_epsilon is not None for level in levels.values()]
        if any(kept) and not all(kept):
            raise ValueError("give each level a lasting_epsilon, or none: devices keep their responses, or do not")
        given = [level.share for level in levels.values() if level.share is not None]
        if given and len(given) < len(levels):
            raise ValueError("give each level a share, or none for equal shares")
        if given and abs(math.fsum(given) - 1) > 1e-9:
            raise ValueError(f"the shares must sum to 1, got {math.fsum(given):.10g}")
        return levels

    @field_validator("of", mode="before")
    @classmethod
    def _with_budget(cls, of: object, info: ValidationInfo) -> object:
        if not isinstance(of, dict):
            return of
        name = of.get("name")
        if isinstance(name, str) and name in mechanism_names() and (reason := family(name).not_in_levels):
            raise ValueError(f"levels do not take {name}: {reason}")
        # If the levels are wrong, they are missing here, and the error about them is enough.
        most = max((level.epsilon for level in info.data.get("levels", {}).values()), default=1.0)
        for key in ("epsilon", "lasting_epsilon", "share"):
            if of.get(key, most) != most:
                raise ValueError(f"each of the levels has its own {key}; move {key} there")
        return {**of, "epsilon": most}

    @field_serializer("of")
    def _as_given(self, of: MechanismFamily) -> dict[str, Any]:
        """Write what was given alone: each level has defaults of its own, and ``of`` those of the largest epsilon."""
        return of.model_dump(exclude_unset=True, exclude_none=True)

    @property
    def epsilon(self) -> float:
        """The largest budget of one report, in nats."""
        return max(level.epsilon for level in self.levels.values())

    @property
    def lasting_epsilon(self) -> float | None:
        """The largest budget of all reports of one value; None if devices keep no response."""
        return max((level.lasting_epsilon for level in self.levels.values() if level.lasting_epsilon), default=None)

    @property
    def user_groups(self) -> Collection[str]:
        return self.levels

    @property
    def obfuscates(self) -> MechanismFamily:
        return self.of

    def at(self, level: Level) -> MechanismFamily:
        """Return the mechanism of a level, with the parameters that are best for its epsilon."""
        budgets = {"epsilon": level.epsilon, "lasting_epsilon": level.lasting_epsilon}
        return type(self.of).model_validate(self.of.model_dump(exclude_unset=True) | budgets)

    def fitted(self, values: Values, sensitive: Mask, tags: Sequence[Tag]) -> Self:
        if any(tag.zones is not None for tag in tags):
            raise MisfitError("tags", "levels have no zones; remove zones, or choose urr")
        self.of.fitted(values, sensitive, tags)
        return self

    def resolved(self, sensitive: int, size: int) -> Self:
        """Return this mechanism, as ``at`` has the parameters of a level; ValueError if those of a level do not fit."""
        for level in self.levels.values():
            with prefixed("of."):
                self.at(level).resolved(sensitive, size)
        return self

    def device_parameters(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True, exclude={"levels": {"__all__": {"share"}}})

    def protocol(self, variable: Variable) -> LdpProtocol:
        protocols = [build_variable(replace(variable, mechanism=self.at(level))) for level in self.levels.values()]
        shares = [level.share or 1 / len(self.levels) for level in self.levels.values()]
        strata = strata_of([each.mechanism for each in protocols], shares, "level")
        budgets = ", ".join(f"{level.epsilon:g} at {name}" for name, level in self.levels.items())
        terms = f"users choose their level of privacy, whatever they hold, and a report names it: epsilon {budgets}"
        strata.guarantee = replace(strata.guarantee, terms=terms)
        names = tuple(self.levels)
        decoders = [each.decoder for each in protocols if isinstance(each.decoder, PureDecoder)]
        sources = [StratumSource(Pum.of(variable), (0,))] * len(names)
        encoding = StrataEncoding(sources, strata, AtLevel(names))
        return LdpProtocol(encoding, strata, LevelsDecoder(names, decoders, strata))
