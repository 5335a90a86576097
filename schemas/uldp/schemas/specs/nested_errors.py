"""Errors of pydantic about a part of a spec that a model of its own reads, at their place in the whole."""

from typing import Any, cast

from pydantic import ValidationError


def under(key: str, error: ValidationError) -> ValidationError:
    """Return the errors of a part with its key in front of their locations, to raise in a validator of the whole."""
    problems = [_known({**each, "loc": (key, *each["loc"])}) for each in error.errors(include_url=False)]
    return ValidationError.from_exception_data(key, problems)


def _known(problem: dict[str, Any]) -> Any:
    """Return a problem that pydantic can raise again: one of a type that it does not know becomes one of the value."""
    try:
        ValidationError.from_exception_data("", [cast(Any, problem)])
    except KeyError:
        return {**problem, "type": "value_error", "ctx": {"error": ValueError(problem["msg"])}}
    return problem
