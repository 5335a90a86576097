"""What the tests of all rooms count, made from the few values that a test is about."""

from typing import Any

from uldp.schemas.collection import CollectionSpec

MINIMAL: dict[str, Any] = {
    "collection": "c",
    "version": 1,
    "domain": {"size": 5},
    "mechanism": {"name": "urr", "epsilon": 1.0},
    "window": {"size": "1h"},
}


def spec(**keys: Any) -> CollectionSpec:
    """The spec of ``MINIMAL``, but for the keys that are given."""
    return CollectionSpec.parse(MINIMAL | keys)
