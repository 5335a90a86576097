"""Several numbers of one range, as a short form of a record: a device draws one of them, and reports it."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, StringConstraints, ValidationError, model_validator

from uldp.schemas.specs.kinds.number import check_ends
from uldp.schemas.specs.strict import Strict
from uldp.schemas.specs.values import refuse_repeated

#: The mechanism of a record, which draws an attribute.
_OF_RECORD = "sample-one"


class Numbers(Strict):
    """Numbers that all have one range.

    Attributes:
        names: The name of each.
        low: The lower end of the range.
        high: The upper end.
    """

    names: list[Annotated[str, StringConstraints(pattern=r"^[a-z0-9_-]{1,64}$")]] = Field(min_length=1)
    low: float = Field(allow_inf_nan=False)
    high: float = Field(allow_inf_nan=False)

    @model_validator(mode="after")
    def _is_a_range(self) -> "Numbers":
        check_ends(self.low, self.high)
        refuse_repeated(self.names)
        return self


def as_record(keys: Any) -> Any:
    """Return the keys of a spec with a record in place of ``domain.numbers``, each attribute with the mechanism.

    Keys that are wrong stay as they are, for the error about them.
    """
    domain, mechanism = (keys.get(key) if isinstance(keys, dict) else None for key in ("domain", "mechanism"))
    if not isinstance(domain, dict) or "numbers" not in domain or "record" in domain:
        return keys
    try:
        numbers = Numbers.model_validate(domain["numbers"])
    except ValidationError:
        return keys
    others = {key: value for key, value in domain.items() if key != "numbers"}
    record = {name: {"number": {"low": numbers.low, "high": numbers.high}} for name in numbers.names}
    keys = keys | {"domain": others | {"record": record}}
    if isinstance(mechanism, dict) and mechanism.get("name") != _OF_RECORD:
        keys["mechanism"] = _of_each(mechanism, numbers.names)
    return keys


def _of_each(mechanism: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """Return the mechanism of a record whose attributes all have this one."""
    budgets = {key: mechanism[key] for key in ("epsilon", "lasting_epsilon") if key in mechanism}
    own = {key: value for key, value in mechanism.items() if key not in budgets}
    return {"name": _OF_RECORD, **budgets, "of": dict.fromkeys(names, own)}
