"""What ``uldp check`` says of a valid spec, as an object of JSON."""

from typing import Any

from uldp.pipelines.caveats import caveats
from uldp.pipelines.exposure import exposure_text
from uldp.pipelines.results.text import spec_text
from uldp.pipelines.zones import proposals
from uldp.schemas.specs.collection import CollectionSpec


def checked(spec: CollectionSpec, users: int, days: int | None, *, zones: bool) -> dict[str, Any]:
    """Return the facts of a spec, its lines of text, and its warnings; with ``days``, what a device spends in these."""
    _, *lines = spec_text(spec, users).splitlines()
    return {
        "valid": True,
        "collection": spec.collection,
        "version": spec.version,
        "device_digest": spec.device_digest,
        "mechanism": spec.mechanism.name,
        "epsilon": spec.mechanism.epsilon,
        "lasting_epsilon": spec.mechanism.lasting_epsilon,
        "estimators": spec.estimators,
        "users": users,
        "text": [line.removeprefix("  ") for line in lines],
        **({} if days is None else {"exposure": {"days": days, "lines": list(exposure_text(spec, days))}}),
        **({"zones": list(proposals(spec, users))} if zones else {}),
        "warnings": list(caveats(spec, users)),
    }
