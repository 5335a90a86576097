"""How many strings a collector looks for that nobody has listed. Devices do not know these numbers."""

from pydantic import Field

from uldp.schemas.specs.strict import Strict


class Discover(Strict):
    """The search for frequent strings, by their prefixes.

    Attributes:
        keep: How many prefixes of each length are kept.
        most: How many whole strings are tested at the most.
    """

    keep: int = Field(default=32, ge=1, le=1024)
    most: int = Field(default=64, ge=1, le=1024)
