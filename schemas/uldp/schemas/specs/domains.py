"""The domain of a collection: the values that a device may hold, a number, a ranking and so on, or a record."""

from typing import Annotated, Any

from pydantic import Field, model_validator

from uldp.schemas.specs.discover import Discover
from uldp.schemas.specs.folder import SpecFolder
from uldp.schemas.specs.kinds import KINDS, RECORD, Ends, Kind, ListedValues, Number, Pairs, Ranking, Sets, Strings
from uldp.schemas.specs.numbers import Numbers
from uldp.schemas.specs.strict import Strict
from uldp.schemas.specs.values import Sensitive, read_values, refuse_repeated

AttributeName = Annotated[
    str, Field(pattern=r"^[a-z0-9_-]{1,64}$", description="1 to 64 of the characters a-z, 0-9, _ and -")
]


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


class VariableDomain(Strict):
    """What a device may hold: one of ``size`` values, one of ``labels``, a number, a string, a set, pairs, a ranking.

    Pairs are keys with a number each.
    """

    size: int | None = Field(default=None, ge=2, le=1 << 24)
    labels: list[str] | None = Field(default=None, min_length=2)
    labels_file: str | None = None
    number: Number | None = None
    strings: Strings | None = None
    set: Sets | None = None
    pairs: Pairs | None = None
    ranking: Ranking | None = None

    @model_validator(mode="after")
    def _one_form(self) -> "VariableDomain":
        of_a_collection = (
            "size",
            "labels",
            "labels_file",
            "number",
            "strings",
            "set",
            "pairs",
            "ranking",
            "record",
            "numbers",
        )
        forms = [name for name in of_a_collection if name in type(self).model_fields]
        given = [name for name in forms if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give one of {', '.join(forms)} (given: {', '.join(given) or 'none'})")
        refuse_repeated(self.labels or [])
        return self

    @property
    def kind(self) -> str:
        """The name of the kind of the domain, which decides the mechanisms for it."""
        return next((name for name in KINDS if getattr(self, name, None) is not None), ListedValues.name)

    def read(self, folder: SpecFolder) -> Kind:
        """Return the domain; labels may come from a file of ``folder``.

        Raises:
            ValueError: if the file cannot be read, or does not hold labels.
        """
        if self.kind == ListedValues.name:
            return ListedValues(read_values(self.size, self.labels, self.labels_file, folder))
        kind: Kind = getattr(self, self.kind)
        return kind.located(folder)


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
        for name, kind in KINDS.items():
            if isinstance(data, dict) and name in data and issubclass(kind, Sets):
                raise ValueError(f"an attribute cannot be of {kind.holds}; give {kind.holds} a collection of their own")
        return data


class Domain(VariableDomain):
    """The domain of a collection: that of one variable, or a record of attributes by name."""

    record: dict[AttributeName, Attribute] | None = Field(default=None, min_length=1)
    #: A short form of a record of numbers of one range, which all have the mechanism of the spec.
    numbers: Numbers | None = None

    @property
    def kind(self) -> str:
        """The name of the kind of the domain, which decides the mechanisms for it."""
        return super().kind if self.record is None else RECORD
