"""The domain of a collection: the values that a device may hold, a number, strings, or a record of several of these."""

import math
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from uldp.schemas.specs.mistakes import quote
from uldp.schemas.specs.strict import Strict

DomainKind = Literal["values", "number", "strings", "record"]
#: The values that are sensitive for everybody.
Sensitive = Literal["all"] | list[int | str]
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


class Number(Strict):
    """The range of a number, with both ends."""

    low: float = Field(allow_inf_nan=False)
    high: float = Field(allow_inf_nan=False)

    @model_validator(mode="after")
    def _is_a_range(self) -> "Number":
        if not self.low < self.high:
            raise ValueError(f"low must be less than high, got {self.low:g} and {self.high:g}")
        if math.isinf(self.high - self.low):
            raise ValueError(f"the range from {self.low:g} to {self.high:g} is too wide; use another unit")
        return self

    def read(self, text: str) -> float:
        """Return the number that a table holds as text.

        Raises:
            ValueError: if the text is no number of the range.
        """
        try:
            number = float(text)
        except ValueError:
            raise ValueError(f"{quote(text)} is not a number") from None
        if not self.low <= number <= self.high:
            raise ValueError(f"{quote(text)} is outside of the range {self.low:g} to {self.high:g}")
        return number


class Strings(Strict):
    """All strings of up to ``longest`` bytes of UTF-8; no list of them is needed beforehand."""

    longest: int = Field(ge=1, le=1 << 16)

    def read(self, text: str) -> str:
        """Return a string of the domain.

        Raises:
            ValueError: if it is too long, or is no text of Unicode. The message holds its length alone.
        """
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            raise ValueError("the string is not valid Unicode") from None
        if size > self.longest:
            raise ValueError(f"the string has {size:,} bytes of UTF-8, and the longest has {self.longest:,}")
        return text


class VariableDomain(Strict):
    """What a device may hold: one of ``size`` values, a value for each of ``labels``, a number, or a string."""

    size: int | None = Field(default=None, ge=2, le=1 << 24)
    labels: list[str] | None = Field(default=None, min_length=2)
    labels_file: str | None = None
    number: Number | None = None
    strings: Strings | None = None

    @model_validator(mode="after")
    def _one_form(self) -> "VariableDomain":
        of_a_collection = ("size", "labels", "labels_file", "number", "strings", "record")
        forms = [name for name in of_a_collection if name in type(self).model_fields]
        given = [name for name in forms if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give one of {', '.join(forms)} (given: {', '.join(given) or 'none'})")
        refuse_repeated(self.labels or [])
        return self

    @property
    def kind(self) -> DomainKind:
        """The kind of the domain, which decides the mechanisms for it."""
        if self.strings is not None:
            return "strings"
        return "values" if self.number is None else "number"


class Attribute(VariableDomain):
    """An attribute of a record: its domain, its sensitive values, its tags, and the candidates of its strings."""

    sensitive: Sensitive = "all"
    tags: list[Tag] = Field(default_factory=list)
    candidates: list[str] | None = None
    candidates_file: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _is_no_record(cls, data: Any) -> Any:
        if isinstance(data, dict) and "record" in data:
            raise ValueError("an attribute cannot be a record; add its attributes to the outer record")
        return data


class Domain(VariableDomain):
    """The domain of a collection: that of one variable, or a record of attributes by name."""

    record: dict[AttributeName, Attribute] | None = Field(default=None, min_length=1)

    @property
    def kind(self) -> DomainKind:
        """The kind of the domain, which decides the mechanisms for it."""
        return super().kind if self.record is None else "record"


def refuse_repeated(labels: list[str]) -> None:
    """Raise ValueError if a label occurs twice."""
    seen = set()
    for label in labels:
        if label in seen:
            raise ValueError(f"label {quote(label)} occurs twice; labels must differ")
        seen.add(label)
