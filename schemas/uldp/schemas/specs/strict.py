"""The base of all models of specs: unknown keys and values of wrong types are errors, and nothing changes later."""

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """A mapping of a spec."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
