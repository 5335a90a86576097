"""The domain of a collection: the values that a device may hold, a number, a ranking and so on, or a record."""

from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import (
    BaseModel,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    create_model,
    model_serializer,
    model_validator,
)

from uldp.schemas.specs.candidates import Discover
from uldp.schemas.specs.kinds import KINDS, OWN, RECORD, Ends, Kind, ListedValues, StringSets, of_packages
from uldp.schemas.specs.kinds.number import Numbers
from uldp.schemas.specs.specfile import SpecFolder
from uldp.schemas.specs.strict import Strict, read_part
from uldp.schemas.specs.values import Sensitive, read_values, refuse_repeated

AttributeName = Annotated[
    str, Field(pattern=r"^[a-z0-9_-]{1,64}$", description="1 to 64 of the characters a-z, 0-9, _ and -")
]


#: The ways to list the values of a domain.
_LISTS = ("size", "labels", "labels_file")


class Tag(Strict):
    """A semantic tag of PUM, behind which users hide values, and background knowledge about the hidden values.

    Attributes:
        strength: The number of draws from the distribution of the hidden values that the background is worth.
        zones: A file that divides the values behind the tag into zones. Without ``zone_epsilon``, a report names the
            zone as loudly as epsilon allows.
        zone_epsilon: The budget of an answer about the zone, in nats: the most by which two values behind the tag
            differ.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="1 to 64 of the characters A-Z, a-z, 0-9, _ and -")
    background: str | None = None
    strength: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    zones: str | None = None
    zone_epsilon: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _fits(self) -> "Tag":
        if self.strength is not None and self.background is None:
            raise ValueError("strength says how good a background is; add background, or remove strength")
        if self.zone_epsilon is not None and self.zones is None:
            raise ValueError("zone_epsilon is the budget of an answer about zones; add zones, or remove zone_epsilon")
        return self


if TYPE_CHECKING:

    class _OfOwnKinds(Strict):
        """A key for each of the project's own kinds."""

else:
    _OfOwnKinds = create_model(
        "_OfOwnKinds",
        __base__=Strict,
        # Sets of strings are written as sets.
        **{name: (kind | None, None) for name, kind in OWN.items() if kind not in (ListedValues, StringSets)},
    )


class VariableDomain(_OfOwnKinds):
    """What a device may hold: one of ``size`` values, one of ``labels``, or what a key of another kind says."""

    size: int | None = Field(default=None, ge=2, le=1 << 24)
    labels: list[str] | None = Field(default=None, min_length=2)
    labels_file: str | None = None
    #: The columns of the grid whose cells are the values, for maps: value i is in row i // columns and column
    #: i % columns. Row 0 is at the bottom. Only readers of estimates know it.
    columns: int | None = Field(default=None, ge=2, le=1 << 24)

    _brought: Kind | None = PrivateAttr(default=None)

    @model_validator(mode="wrap")
    @classmethod
    def _has_one_form(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Read one form, which may be a kind that a package brings."""
        brought = [name for name in of_packages() if isinstance(data, dict) and name in data]
        for held in (KINDS[name].holds for name in KINDS if cls._without(data, name)):
            raise ValueError(f"an attribute cannot be of {held}; give {held} a collection of their own")
        found = handler({key: data[key] for key in data if key not in brought} if brought else data)
        given = [name for name in cls.forms() if name in brought or getattr(found, name, None) is not None]
        if len(given) != 1:
            raise ValueError(f"give one of {', '.join(cls.forms())} (given: {', '.join(given) or 'none'})")
        refuse_repeated(found.labels or [])
        if found.columns is not None and given[0] not in _LISTS:
            raise ValueError(f"columns are of values by {', '.join(_LISTS)}, and {given[0]} lists none; remove columns")
        if brought:
            kind = KINDS[brought[0]]
            assert issubclass(kind, BaseModel)
            found._brought = read_part(brought[0], kind, data[brought[0]])
        return found

    @classmethod
    def _without(cls, data: Any, name: str) -> bool:
        """Return whether what a spec says names a kind that such a domain cannot be of."""
        return False

    @model_serializer(mode="wrap")
    def _with_brought(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        if self._brought is not None:
            assert isinstance(self._brought, BaseModel)
            data[self._brought.name] = self._brought.model_dump(mode=info.mode, exclude_none=info.exclude_none)
        return data

    @classmethod
    def brought(cls, key: object) -> type[Kind] | None:
        """Return the kind of this name, if a package brings it; None otherwise."""
        return KINDS[str(key)] if key in of_packages() else None

    @classmethod
    def forms(cls) -> list[str]:
        """Return the keys of which a domain has one."""
        forms = (*_LISTS, *OWN, *of_packages(), "record", "numbers")
        return [name for name in forms if name in cls.model_fields or name in of_packages()]

    @property
    def kind(self) -> str:
        """The name of the kind of the domain, which decides the mechanisms for it."""
        return ListedValues.name if self._given is None else self._given.located_name

    @property
    def _given(self) -> Kind | None:
        """What the spec says of a kind that is no list of values."""
        own = (given for name in OWN if (given := getattr(self, name, None)) is not None)
        return next(own, None) if self._brought is None else self._brought

    def read(self, folder: SpecFolder) -> Kind:
        """Return the domain; ValueError if a file of ``folder`` has no labels, or columns do not fit."""
        if self._given is None:
            return ListedValues(read_values(self.size, self.labels, self.labels_file, folder, self.columns))
        return self._given.located(folder)


class Attribute(VariableDomain):
    """An attribute of a record: its domain, sensitive values, tags, candidates of its strings, ranges, and a search."""

    sensitive: Sensitive = "all"
    tags: list[Tag] = Field(default_factory=list)
    candidates: list[str] | None = None
    candidates_file: str | None = None
    ranges: list[Ends] = Field(default_factory=list)
    discover: Discover | None = None

    @model_validator(mode="before")
    @classmethod
    def _is_no_record(cls, data: Any) -> Any:
        if isinstance(data, dict) and "record" in data:
            raise ValueError("an attribute cannot be a record; add its attributes to the outer record")
        return data

    @classmethod
    def _without(cls, data: Any, name: str) -> bool:
        return isinstance(data, dict) and name in data and not KINDS[name].in_records


class Domain(VariableDomain):
    """The domain of a collection: that of one variable, or a record of attributes by name."""

    record: dict[AttributeName, Attribute] | None = Field(default=None, min_length=1)
    #: A short form of a record of numbers of one range, which all have the mechanism of the spec.
    numbers: Numbers | None = None

    @property
    def kind(self) -> str:
        return super().kind if self.record is None else RECORD
