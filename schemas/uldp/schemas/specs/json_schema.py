"""The JSON Schema of specs, for editors: made of the models that read specs, so it has every key that they have.

An editor checks keys, types and bounds by it. It does not know what two keys mean together: ``uldp check`` does.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import BaseModel

from uldp.schemas.specs.any_mechanism import ANY, FITS, PLACE
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.domains import Attribute, Domain, VariableDomain
from uldp.schemas.specs.families import mechanism_names
from uldp.schemas.specs.kinds import KINDS, of_packages
from uldp.schemas.specs.mechanism_family import family
from uldp.schemas.specs.strict import Strict

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
#: The models of domains, of whose forms a spec has one.
_DOMAINS: Mapping[str, type[VariableDomain]] = {"Domain": Domain, "Attribute": Attribute}
_COMMENTED = re.compile(r"((?:^    #: .*\n)+)^    (\w+):", re.MULTILINE)
_ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def spec_schema() -> dict[str, Any]:
    """Return the JSON Schema of a spec; ValueError if two models have one name."""
    schema = _described(CollectionSpec, CollectionSpec.model_json_schema())
    defs: dict[str, Any] = schema.pop("$defs")
    for name in mechanism_names():
        model = family(name)
        own = _described(model, model.model_json_schema())
        for inner, definition in own.pop("$defs", {}).items():
            if defs.setdefault(inner, definition) != definition:
                raise ValueError(f"two models of specs are named {inner}")
        defs[f"{ANY}-{name}"] = own
    for key, fits in FITS.items():
        fitting = [name for name in mechanism_names() if fits(family(name))]
        for name in fitting if key != ANY else ():  # the epsilon is that of the record, or of the level
            own = defs[f"{ANY}-{name}"]
            defs[f"{key}-{name}"] = own | {"required": [each for each in own["required"] if each != "epsilon"]}
        defs[key] = {"oneOf": [{"$ref": f"#/$defs/{key}-{name}"} for name in fitting]}
    for name in of_packages():
        kind = KINDS[name]
        assert issubclass(kind, BaseModel)
        own = kind.model_json_schema()
        defs |= own.pop("$defs", {}) | {kind.__name__: own}
        for model_of_domain in _DOMAINS:
            defs[model_of_domain]["properties"][name] = {"$ref": f"#/$defs/{kind.__name__}"}
    for name, domain in _DOMAINS.items():
        defs[name]["oneOf"] = [{"required": [form]} for form in domain.forms()]
    models = {model.__name__: model for model in _subclasses(Strict)}
    for name in models.keys() & defs.keys():
        defs[name] = _described(models[name], defs[name])
    whole = {"$schema": _DIALECT, **schema, "title": "A spec of uldp-stream", "$defs": defs}
    return cast(dict[str, Any], _placed(whole))


def _subclasses(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for each in model.__subclasses__():
        yield each
        yield from _subclasses(each)


def _placed(part: Any) -> Any:
    """Put references to mechanisms into their places."""
    if isinstance(part, dict):
        if PLACE in part:
            return {"$ref": f"#/$defs/{part[PLACE]}", **{key: value for key, value in part.items() if key != PLACE}}
        closed = {"additionalProperties": False} if "patternProperties" in part else {}
        return {key: _placed(value) for key, value in part.items()} | closed
    return [_placed(each) for each in part] if isinstance(part, list) else part


def _source(model: type[BaseModel]) -> str:
    """Return the source of a model; nothing if the program has made it."""
    try:
        return inspect.getsource(model)
    except OSError:
        return ""


def _described(model: type[BaseModel], schema: dict[str, Any]) -> dict[str, Any]:
    """Give each key what the source says of it, in a comment before it or in the docstring of its model."""
    texts: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            comments = _COMMENTED.findall(_source(base))
            texts |= {name: " ".join(re.findall(r"#: (.*)", text)) for text, name in comments}
            texts |= {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(inspect.getdoc(base) or "")}
    for name, text in texts.items():
        if name in schema.get("properties", {}):
            schema["properties"][name].setdefault("description", text)
    schema["description"] = inspect.cleandoc(schema.get("description", "")).partition("\n")[0]
    for key in schema.get("properties", {}).values():
        key.pop("title", None)
    return schema
