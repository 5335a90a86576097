"""The keys of a spec that take a mechanism of any family: its name chooses the model that reads it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any

from pydantic import BeforeValidator, SerializeAsAny, ValidationError, WithJsonSchema

from uldp.schemas.specs.families import mechanism_names, registered
from uldp.schemas.specs.mechanism_family import MechanismFamily, family, names_where
from uldp.schemas.specs.strict import read_part

#: What stands for these in a JSON Schema, until ``uldp.schemas.specs.json_schema`` puts the families in its place.
PLACE = "x-uldp"
ANY, PART, LEVEL = "mechanism", "mechanism-of-attribute", "mechanism-of-levels"
#: Which families fit a key that takes a mechanism.
FITS: Mapping[str, Callable[[type[MechanismFamily]], bool]] = {
    ANY: lambda model: True,
    PART: lambda model: model.is_part(),
    LEVEL: lambda model: model.is_level(),
}


def _read(data: object, place: str) -> object:
    """Read a mechanism by the model of its name; ValidationError with it in the location, ValueError if it is alone."""
    if isinstance(data, str) and data in mechanism_names():
        keys = "".join(f", {example.removeprefix('for example ')}" for example in family(data).needs.values())
        raise ValueError(f"must be a mapping; write {{name: {data}{keys}}}")
    if not isinstance(data, dict):
        return data
    if "name" not in data:
        raise _error("union_tag_not_found", data, discriminator="'name'")
    name = data["name"]
    if not (isinstance(name, str) and name in registered() and FITS[place](family(name))):
        expected = ", ".join(repr(known) for known in names_where(FITS[place]).split(", "))
        raise _error("union_tag_invalid", data, discriminator="'name'", tag=str(name), expected_tags=expected)
    return read_part(name, family(name), data)


def _error(kind: str, data: object, **context: str) -> ValidationError:
    details: Any = {"type": kind, "loc": (), "input": data, "ctx": context}
    return ValidationError.from_exception_data("mechanism", [details])


def _reader(place: str) -> BeforeValidator:
    return BeforeValidator(partial(_read, place=place))


#: A mechanism of any family; one for an attribute of a record; one that levels of privacy have.
AnyMechanism = Annotated[SerializeAsAny[MechanismFamily], _reader(ANY), WithJsonSchema({PLACE: ANY})]
PartMechanism = Annotated[SerializeAsAny[MechanismFamily], _reader(PART), WithJsonSchema({PLACE: PART})]
LevelMechanism = Annotated[SerializeAsAny[MechanismFamily], _reader(LEVEL), WithJsonSchema({PLACE: LEVEL})]
