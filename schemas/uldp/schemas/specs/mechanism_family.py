"""What every model of a mechanism in a spec has: its capabilities, its budget, and the protocol that it builds."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from uldp.schemas.arrays import Mask
from uldp.schemas.errors import UldpError
from uldp.schemas.specs.budget import Epsilon, covers
from uldp.schemas.specs.domains import Tag, VariableDomain
from uldp.schemas.specs.estimators import OF_COUNTS, EstimatorName
from uldp.schemas.specs.families import mechanism_names, registered
from uldp.schemas.specs.kinds import RECORD, Kind, is_listed
from uldp.schemas.specs.mistakes import near, notes, quote
from uldp.schemas.specs.strict import Strict
from uldp.schemas.specs.values import Values

if TYPE_CHECKING:
    from uldp.schemas.specs.variable import Variable


class MisfitError(UldpError):
    """A mechanism does not fit: ``key`` is domain, sensitive, tags or a parameter, and ``text`` has the remedy."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(f"{key}: {text}")
        self.key, self.text = key, text


class MechanismFamily(Strict):
    """A mechanism, as a spec names it.

    Attributes:
        title: What it is called on a page.
        literature: What a spec says, beginning with the name of the mechanism, in place of names of the literature.
        utility_optimized: Whether it protects only sensitive values, so that a spec may list these.
        takes_tags: Whether it can be the common mechanism of PUM.
        like_with_tags: The mechanism that is most like it, of those that take tags.
        answers_zones: Whether it reports the zone behind a tag with a budget of its own.
        protects: What it protects, in the words of an error.
        several_epsilons: Whether the epsilon of two values, or of a user, may be less than that of an estimate.
        no_budget: Why its epsilon cannot be counted against a budget of the user; empty if it can.
        not_in_levels: Why levels do not take it, and what to do; None if they do, or if it is not for values.
        discovers: Whether it finds strings that nobody has listed, in on-time and late panes alone, because that takes
            seconds.
        not_ranked: Why ``uldp advise`` does not compare it; empty if it does.
        domain_kind: The kind of domain that it is for.
        also_for: Further kinds of domain that it is for.
        estimators: The estimators for its statistic; the first is the default.
        largest_size: The most values that its domain may have.
        large_domains: Why a domain cannot be larger, and which mechanisms are for larger ones.
        needs: The keys that must be there, in the order in which they are missed, each with an example.
        refuses: Keys that somebody may expect here, each with what to do instead.
        name: Its name in specs.
    """

    title: ClassVar[str]
    literature: ClassVar[Mapping[str, str]] = {}
    utility_optimized: ClassVar[bool] = False
    takes_tags: ClassVar[bool] = False
    like_with_tags: ClassVar[str] = "ubd"
    answers_zones: ClassVar[bool] = False
    protects: ClassVar[str] = "every value alike"
    several_epsilons: ClassVar[bool] = False
    no_budget: ClassVar[str] = ""
    not_in_levels: ClassVar[str | None] = None
    discovers: ClassVar[bool] = False
    not_ranked: ClassVar[str] = ""
    domain_kind: ClassVar[str] = "values"
    also_for: ClassVar[tuple[str, ...]] = ()
    estimators: ClassVar[tuple[EstimatorName, ...]] = OF_COUNTS
    largest_size: ClassVar[int] = 1 << 24
    large_domains: ClassVar[tuple[str, str]] = ("has a cell for each value", "")
    needs: ClassVar[Mapping[str, str]] = {}
    refuses: ClassVar[Mapping[str, str]] = {}

    name: str

    if TYPE_CHECKING:  # each model has these as a field, as a constant, or as a property

        @property
        def epsilon(self) -> float | None:
            """The largest budget of one report, in nats; None without privacy."""

        @property
        def lasting_epsilon(self) -> float | None:
            """The largest budget of all reports of one value, in nats; None if devices keep no response."""

        @property
        def share(self) -> float | None:
            """In a record, the share of the reports about this attribute; None for equal shares."""

    @classmethod
    def by_name(cls, name: object) -> "type[MechanismFamily] | None":
        """Return the model of this name, if a key takes mechanisms of any family; None otherwise."""
        return family(name) if cls is MechanismFamily and isinstance(name, str) and name in registered() else None

    @classmethod
    def all_keys(cls) -> set[str]:
        """Return the keys that mechanisms of any family have, beside the name."""
        return {key for name in registered() for key in family(name).model_fields} - {"name"}

    @classmethod
    def takes(cls, kind: str) -> bool:
        """Return whether it is for a kind of domain."""
        return kind in (cls.domain_kind, *cls.also_for)

    @classmethod
    def is_part(cls) -> bool:
        """Return whether it can be the mechanism of an attribute of a record."""
        return "share" in cls.model_fields and cls.domain_kind not in (RECORD, "set")

    @classmethod
    def is_level(cls) -> bool:
        """Return whether it can be the mechanism of levels."""
        return is_listed(cls.domain_kind) and "epsilon" in cls.model_fields and cls.not_in_levels is None

    @classmethod
    def example(cls, size: int) -> dict[str, Any]:
        """Return the parameters beside epsilon that it must have, as ``uldp advise`` takes them for ``size`` values."""
        return {}

    @classmethod
    def record_examples(cls, sizes: Mapping[str, int], epsilon: float) -> Iterator[dict[str, Any]]:
        """Yield the parameters beside budgets with which ``uldp advise`` compares it for a record; none by default."""
        yield from ()

    @property
    def user_groups(self) -> Collection[str]:
        """The names of the groups of users that have tables of their own, besides those of all users."""
        return ()

    @property
    def obfuscates(self) -> "MechanismFamily":
        """The mechanism whose capabilities matter: that of each of the levels, or this one."""
        return self

    @property
    def parts(self) -> "Mapping[str, MechanismFamily]":
        """The mechanisms of the attributes of a record; empty for others."""
        return {}

    @property
    def most_candidates(self) -> int:
        """The most strings whose shares an estimate has; 0 if it is not for strings."""
        return 0

    def estimators_of(self, kind: Kind) -> "tuple[EstimatorName, ...]":
        """Return the estimators for a domain of this kind; the first is the default."""
        return self.estimators

    def bins_of(self, kind: Kind) -> int:
        """Return the number of bins whose shares add up to those of ranges; 0 if estimates have no ranges."""
        return 0

    @property
    def text(self) -> str:
        """What it is called on a page, with the parameters that its reader may know."""
        return self.title

    def share_of(self, attribute: str) -> float:
        """Return the share of the reports about an attribute of a record; equal shares are the default."""
        share = self.parts[attribute].share
        return 1 / len(self.parts) if share is None else share

    def fitted(self, values: Values, sensitive: Mask, tags: Sequence[Tag]) -> Self:
        """Return this mechanism for values and which are sensitive, shape (|X|,); MisfitError if it is not for them."""
        return self

    def resolved(self, sensitive: int, size: int) -> Self:
        """Return this mechanism with numbers in place of auto, for so many symbols, of which some are sensitive.

        Bots are among both. ValueError, which begins with the key, if a parameter does not fit.
        """
        return self

    def of_domain(self, kind: Kind) -> Self:
        """Return this mechanism for a domain that is no list of values, with numbers in place of auto."""
        return self

    def uneven_noise(self, sensitive: Mask) -> str:
        """Return which values have less noise than others, so that norm-sub cannot be first; empty if none have."""
        return ""

    def check_estimator(self, estimator: str) -> None:
        """Raise MisfitError if a parameter is not for one of its estimators."""

    def device_parameters(self) -> dict[str, Any]:
        """Return what devices need of it, with each default written out."""
        return self.model_dump(exclude_none=True)

    def protocol(self, variable: "Variable") -> object:
        """Build the ``LdpProtocol`` of ``uldp.mechanisms`` for a variable; ValueError if its domain does not fit."""
        raise NotImplementedError(f"{self.name} is the mechanism of no single variable")

    def of_attributes(self, record: Mapping[str, VariableDomain]) -> "Mapping[str, MechanismFamily]":
        """Return the mechanisms of the attributes; ValueError, which begins with the key, if it is not for them."""
        return self.parts

    def record_parameters(self, variables: "Mapping[str, Variable]") -> dict[str, Any]:
        """Return what devices need to know of a record beside the mechanisms of its attributes, by keys."""
        return {}

    def check_given(self, names: Collection[str], given: Sequence[Sequence[str]]) -> None:
        """Check pairs of what is given and asked for; ValueError, which begins with the key, if there is no table."""
        if given:
            raise ValueError(f"given: {self.name} has no tables of two attributes; remove it, or choose marginals")

    def joined(
        self, variables: "Mapping[str, Variable]", parts: Mapping[str, Any], given: Sequence[Sequence[str]] = ()
    ) -> object:
        """Build the ``LdpProtocol`` of a record from those of its attributes, and the pairs of ``check_given``."""
        raise NotImplementedError(f"{self.name} is for one variable")

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
            takers = _takers(key) if key not in cls.model_fields else ""
            if takers:
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

    needs: ClassVar = {"epsilon": "for example epsilon: 1.0"}

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
    # Nearer to 1, floats round 1 - theta so much that a bit that is not set could say more than epsilon.
    if not 0 < theta <= 1 - 1e-6:
        raise ValueError(
            "must be more than 0 and less than 1, and 0.999999 at most, such as 0.5: with 0 no true bit is set, and"
            " with 1 a bit that is not set excludes its value"
        )
    return theta


#: The probability that the bit of the true value is set.
Theta = Annotated[float, AfterValidator(_inside)]


@cache
def family(name: str) -> type[MechanismFamily]:
    """Return the model of a mechanism; KeyError if none has this name, TypeError if the name stands for no model."""
    point = registered()[name]
    found = point.load()
    if not (isinstance(found, type) and issubclass(found, MechanismFamily)):
        raise TypeError(f"{point.value}, the mechanism {name}, is no MechanismFamily; see docs/own_mechanism.md")
    return found


def names_where(holds: Callable[[type[MechanismFamily]], bool]) -> str:
    """Return the names of all mechanisms for whose models ``holds`` returns true, as text."""
    return ", ".join(name for name in mechanism_names() if holds(family(name)))


def several_epsilons(name: str) -> bool:
    """Return whether the epsilon of an estimate by this mechanism is the largest of several."""
    return name in registered() and family(name).several_epsilons


def _unknown(data: Mapping[object, object], known: Collection[str]) -> str:
    """Return what to say of the first key that no mechanism has: it may be a needed key with a wrong spelling."""
    key = next((str(key) for key in data if key not in known and not _takers(str(key))), None)
    return "" if key is None else f"; {quote(key)} is an unknown key{notes(near(key, known))}"


def _takers(parameter: str) -> str:
    return names_where(lambda family: parameter in family.model_fields)
