"""The base of all models of specs: unknown keys and values of wrong types are errors, and nothing changes later."""

from typing import Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError

AnyModel = TypeVar("AnyModel", bound=BaseModel)


class Strict(BaseModel):
    """A mapping of a spec."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class OrWords:
    """Annotates a type whose validator also takes some words, which the type itself does not have."""

    def __init__(self, *words: str) -> None:
        self._words = words

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the schema of the type with the words; called by pydantic."""
        return {"anyOf": [{"enum": [*self._words]}, handler(core)]}


def read_part(key: str, model: type[AnyModel], data: object) -> AnyModel:
    """Read a part in a validator of the whole; ValidationError with the key of the part in front of each location."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems = [_known({**each, "loc": (key, *each["loc"])}) for each in error.errors(include_url=False)]
    raise ValidationError.from_exception_data(key, problems)


def _known(problem: dict[str, Any]) -> Any:
    """Return a problem that pydantic can raise again: one of a type that it does not know becomes one of the value."""
    try:
        ValidationError.from_exception_data("", [cast(Any, problem)])
    except KeyError:
        return {**problem, "type": "value_error", "ctx": {"error": ValueError(problem["msg"])}}
    return problem
