"""Words that a key of a spec takes beside its values, in the JSON Schema of specs."""

from typing import Any

from pydantic import GetJsonSchemaHandler


class OrWords:
    """Annotates a type whose validator also takes some words, which the type itself does not have."""

    def __init__(self, *words: str) -> None:
        self._words = words

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the schema of the type with the words; called by pydantic."""
        return {"anyOf": [{"enum": [*self._words]}, handler(core)]}
