"""Kinds of domain, a module each: their objects answer what others would ask "which kind?" for; see ``Kind``."""

from uldp.schemas.specs.kinds.kind import Column, Kind, Value
from uldp.schemas.specs.kinds.number import Number
from uldp.schemas.specs.kinds.pairs import Pairs
from uldp.schemas.specs.kinds.ranges import Ends, Range
from uldp.schemas.specs.kinds.ranking import Ranking
from uldp.schemas.specs.kinds.sets import Sets
from uldp.schemas.specs.kinds.strings import Strings
from uldp.schemas.specs.kinds.values import ListedValues

__all__ = [
    "KINDS",
    "RECORD",
    "Column",
    "Ends",
    "Kind",
    "ListedValues",
    "Number",
    "Pairs",
    "Range",
    "Ranking",
    "Sets",
    "Strings",
    "Value",
    "holds",
    "is_listed",
]

#: The kinds of one variable by name. All but values are keys of ``domain`` in a spec.
KINDS: dict[str, type[Kind]] = {kind.name: kind for kind in (ListedValues, Number, Strings, Sets, Pairs, Ranking)}
#: The ``domain_kind`` of a mechanism for several variables.
RECORD = "record"


def holds(name: str) -> str:
    """Return what a device holds of a domain of this kind, or of a record, in the words of an error."""
    return KINDS[name].holds if name in KINDS else f"a {name}"


def is_listed(name: str) -> bool:
    """Return whether a domain of this kind lists its values; that of a record has a list for each attribute."""
    return name in KINDS and KINDS[name].listed
