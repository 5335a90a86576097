"""The half of a spec that devices must know. Reports under another one cannot be added to the same statistic.

The other half is how the collector reads the statistic, and may change while the version stays. The slice of windows,
by which devices round event times, is no fact of the digest, because longer slices may hold those of devices
(``WindowSpec.splits``). Nor are ``event_time`` and ``budget``, which say what a device must not send, and ``columns``,
by which a map shows values.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from uldp.schemas.specs.mechanism_family import MechanismFamily
from uldp.schemas.specs.variable import Variable


def device_half(
    mechanism: MechanismFamily, variables: Mapping[str, Variable], by: Mapping[str, Sequence[str]] | None = None
) -> dict[str, Any]:
    """Return the facts that devices need, by the keys of the spec, such as ``mechanism.epsilon``.

    Each default is written out, labels take the place of the file that names them, and sensitive values are indices.
    So two specs that mean the same to a device have the same facts.
    """
    # Specs without public attributes keep the digest that they had before there were any.
    return dict(_facts(mechanism, variables)) | ({} if by is None else {"by": [[*pair] for pair in by.items()]})


def _facts(mechanism: MechanismFamily, variables: Mapping[str, Variable]) -> Iterator[tuple[str, Any]]:
    if "" not in variables:
        yield "domain.record", list(variables)
        yield "mechanism.name", mechanism.name
        yield "mechanism.epsilon", mechanism.epsilon
        yield from _under("mechanism.", mechanism.record_parameters(variables))
    for name, variable in variables.items():
        of_domain, beside = (f"domain.record.{name}.",) * 2 if name else ("domain.", "")
        yield from _under(of_domain, dict(variable.kind.facts()))
        all_sensitive = bool(variable.sensitive_mask.all())
        yield f"{beside}sensitive", "all" if all_sensitive else variable.sensitive_mask.nonzero()[0].tolist()
        yield f"{beside}tags", [tag.name for tag in variable.tags]
        for tag, zones in zip(variable.tags, variable.zones, strict=True):
            # Specs without zones keep the digest that they had before there were any.
            if zones is not None:
                yield f"{beside}tags.{tag.name}.zones", zones.of_value.tolist()
                yield f"{beside}tags.{tag.name}.zone_epsilon", tag.zone_epsilon
        parameters = variable.parameters.device_parameters() | ({"share": variable.share} if mechanism.parts else {})
        yield from _under(f"mechanism.of.{name}." if name else "mechanism.", parameters)


def _under(prefix: str, facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((prefix + key, value) for key, value in facts.items())


def digest(half: Mapping[str, Any]) -> str:
    """Return the first 16 hex digits of the SHA-256 of a device half in canonical JSON."""
    text = json.dumps(half, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def changed_key(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Return the first key in which two device halves differ, or None if they are the same."""
    return next((key for key in {**before, **now} if before.get(key) != now.get(key)), None)
