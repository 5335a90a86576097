"""The place of a validation error in a spec: the keys of the user, without the branches of pydantic's unions."""

from collections.abc import Collection
from dataclasses import dataclass, field
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo


@dataclass
class Place:
    """A place in a spec."""

    keys: list[int | str] = field(default_factory=list)  # the keys and indices on the way to it, as the user wrote them
    known: Collection[str] = ()  # the keys that the innermost mapping on the way can have
    description: str | None = None  # the description of the key or value at the place, if the model has one
    form: str = ""  # A form to copy of the value at the place, if it is of a kind of domain
    homes: Collection[str] = ()  # the mappings beside it of which it is a key, if it is an unknown one
    union: int = 0  # the number of keys up to one whose value is a word or a list; 0 if no such key is on the way


def locate(model: type[BaseModel], location: tuple[int | str, ...], unions: Collection[str]) -> Place:
    """Return the place of an error of pydantic; ``unions`` are the keys whose value is a word or a list."""
    place, kinds = Place(), [model]
    for part in location:
        kinds = _enter(place, kinds, part, unions)
    return place


def _enter(place: Place, kinds: list[Any], part: int | str, unions: Collection[str]) -> list[Any]:
    """Go one step along a location, and return the alternatives for the type of the value there."""
    models = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
    if models and hasattr(models[0], "by_name") and (chosen := models[0].by_name(part)) is not None:
        return [chosen]  # the step is the name of a mechanism
    if part == "[key]":  # the error is about the key before
        return []
    inner = next((kind for kind in kinds if get_origin(kind) in {dict, list}), None)
    if not models and get_origin(inner) is not dict and not isinstance(part, int):
        return kinds  # the step names a branch of a union
    place.keys.append(part)
    if models:
        fields = models[0].model_fields
        place.known = fields.keys()
        if part not in fields:
            place.homes = [
                name for name, info in fields.items() if any(_takes(kind, part) for kind in _kinds(info.annotation))
            ]
            return [models[0].brought(part)] if hasattr(models[0], "brought") else []
        place.description = fields[str(part)].description
        if part in unions:
            place.union = len(place.keys)
        inside = _kinds(fields[str(part)].annotation)
        place.form = next((kind.form for kind in inside if hasattr(kind, "form")), "")
        return inside
    if inner is None:
        return []
    place.description = _description(get_args(inner)[0])
    return _kinds(get_args(inner)[-1])


def _takes(kind: Any, key: int | str) -> bool:
    """Return whether a type is a mapping with this key; of mechanisms, whether any of them has it."""
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return False
    return key in (kind.all_keys() if hasattr(kind, "all_keys") else kind.model_fields)


def _kinds(annotation: Any) -> list[Any]:
    """Return the alternatives of a type."""
    if get_origin(annotation) is Annotated:
        return _kinds(get_args(annotation)[0])
    if get_origin(annotation) in {Union, UnionType}:
        return [kind for alternative in get_args(annotation) for kind in _kinds(alternative)]
    return [annotation]


def _description(annotation: Any) -> str | None:
    return next((info.description for info in get_args(annotation) if isinstance(info, FieldInfo)), None)
