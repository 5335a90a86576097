"""What every model of a mechanism in a spec has: its capabilities, and its budget."""

import math
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, ClassVar, Self, get_args

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from uldp.schemas.specs.domains import DomainKind
from uldp.schemas.specs.epsilon import Epsilon, covers
from uldp.schemas.specs.mechanism_names import OF_COUNTS, EstimatorName, MechanismName
from uldp.schemas.specs.mistakes import near, notes, quote
from uldp.schemas.specs.strict import Strict

#: The most buckets of a hash, and the most bins of a number.
MOST_BUCKETS = 1 << 16


NEEDS_EPSILON = {"epsilon": "for example epsilon: 1.0"}

#: The models by the names of their mechanisms; each model adds itself.
_FAMILIES: "dict[str, type[MechanismFamily]]" = {}


class MechanismFamily(Strict):
    """A mechanism.

    Attributes:
        utility_optimized: Whether it protects only sensitive values, so that a spec may list these.
        takes_tags: Whether it can be the common mechanism of PUM.
        domain_kind: The kind of domain that it is for.
        estimators: The estimators for its statistic; the first is the default.
        largest_size: The most values that its domain may have.
        large_domains: Why a domain cannot be larger, and which mechanisms are for larger ones.
        needs: The keys that must be there, in the order in which they are missed, each with an example.
        refuses: Keys that somebody may expect here, each with what to do instead.
        name: Its name in specs.
    """

    utility_optimized: ClassVar[bool] = False
    takes_tags: ClassVar[bool] = False
    domain_kind: ClassVar[DomainKind] = "values"
    estimators: ClassVar[tuple[EstimatorName, ...]] = OF_COUNTS
    largest_size: ClassVar[int] = 1 << 24
    large_domains: ClassVar[tuple[str, str]] = ("has a cell for each value", "")
    needs: ClassVar[Mapping[str, str]] = {}
    refuses: ClassVar[Mapping[str, str]] = {}

    name: str

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        _FAMILIES.update(dict.fromkeys(get_args(cls.model_fields["name"].annotation), cls))

    def resolved(self, sensitive: int, size: int) -> Self:
        """Return this mechanism with numbers in place of auto.

        Args:
            sensitive: The number of sensitive symbols, bots among them.
            size: The number of all symbols.

        Raises:
            ValueError: if a parameter does not fit. The message begins with its key.
        """
        return self

    @model_validator(mode="before")
    @classmethod
    def _takes_its_parameters(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        for key, instead in cls.refuses.items():
            if key in data:
                raise ValueError(instead)
        for key, example in cls.needs.items():
            if data.get(key) is None:
                raise ValueError(f"{data['name']} needs {key}, {example}{_unknown(data, cls.model_fields)}")
        for key in data:
            takers = _takers(key)
            if takers and key not in cls.model_fields:
                raise ValueError(f"{data['name']} takes no {key}; only {takers} {'do' if ',' in takers else 'does'}")
        return data


class PrivateSpec(MechanismFamily):
    """A mechanism with privacy.

    Attributes:
        epsilon: The privacy budget of one report, in nats.
        share: In a record, the share of the reports about this attribute.
        lasting_epsilon: The privacy budget of all reports of one value together, in nats; None if devices keep no
            response, and each report spends ``epsilon`` anew.
    """

    needs = NEEDS_EPSILON

    name: str
    epsilon: Epsilon
    share: float | None = Field(default=None, gt=0, le=1)
    lasting_epsilon: float | None = None

    @field_validator("lasting_epsilon")
    @classmethod
    def _covers_one_report(cls, lasting: float | None, info: ValidationInfo) -> float | None:
        # If epsilon is wrong, it is missing here, and the error about it is enough.
        return None if lasting is None else covers(lasting, info.data.get("epsilon", 0.0))


def _inside(theta: float) -> float:
    if not 0 < theta < 1:
        raise ValueError(
            "must be more than 0 and less than 1, such as 0.5: with 0 no true bit is set, and with 1 a bit that is not"
            " set excludes its value"
        )
    return theta


#: The probability that the bit of the true value is set.
Theta = Annotated[float, AfterValidator(_inside)]


def best_buckets(data: dict[str, Any]) -> int:
    """Return the number of buckets with the least variance (Wang et al., USENIX Security 2017, section 4.4)."""
    # Older versions of pydantic ask even if epsilon is wrong and missing here; the error about it is enough.
    return min(round(math.exp(data.get("epsilon", 1.0))) + 1, MOST_BUCKETS)


def _unknown(data: Mapping[object, object], known: Collection[str]) -> str:
    """Return what to say of the first key that no mechanism has: it may be a needed key with a wrong spelling."""
    key = next((str(key) for key in data if key not in known and not _takers(str(key))), None)
    return "" if key is None else f"; {quote(key)} is an unknown key{notes(near(key, known))}"


def _takers(parameter: str) -> str:
    return names_where(lambda family: parameter in family.model_fields)


def names_where(holds: Callable[[type[MechanismFamily]], bool]) -> str:
    """Return the names of all mechanisms for whose models ``holds`` returns true, as text."""
    return ", ".join(name for name in get_args(MechanismName) if holds(_FAMILIES[name]))
